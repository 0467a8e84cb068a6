/*
 * Names of OpenTelemetry's conventions for generative AI, as they were in November 2026 (status: development). The package that
 * has them as constants marks them as moved elsewhere, so they are written here; what begins with `holdfast.` is ours.
 */
export const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agent: 'gen_ai.agent.name',
  workflow: 'gen_ai.workflow.name',
  conversation: 'gen_ai.conversation.id',
  model: 'gen_ai.request.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  tokenType: 'gen_ai.token.type',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCall: 'gen_ai.tool.call.id',
  // Contents: only where somebody asked for them.
  system: 'gen_ai.system_instructions',
  input: 'gen_ai.input.messages',
  output: 'gen_ai.output.messages',
  arguments: 'gen_ai.tool.call.arguments',
  result: 'gen_ai.tool.call.result',
} as const

export const ERROR_TYPE = 'error.type'

export const HOLDFAST = {
  run: 'holdfast.run.id',
  runState: 'holdfast.run.state',
  attempt: 'holdfast.attempt.number',
  purpose: 'holdfast.model.purpose',
  cost: 'holdfast.cost_usd',
  action: 'holdfast.action.id',
  effect: 'holdfast.action.effect',
  outcome: 'holdfast.action.outcome',
  settledBy: 'holdfast.action.settled_by',
  repeatOf: 'holdfast.action.repeat_of',
  step: 'holdfast.step.name',
} as const

/** The provider and its model, of a name as in the configuration. */
export function modelNames(id: string): { readonly provider: string; readonly model: string } {
  const [, scheme, rest] = /^([\w.-]+)[:/](.+)$/.exec(id) ?? []
  if (scheme === undefined || rest === undefined) return { provider: id, model: id }
  // The address of such a server is nobody's business; the name of the model is what comes last.
  return { provider: scheme, model: scheme === 'openai-compatible' ? rest.replace(/^https?:\/\/[^/]+\//, '') : rest }
}
