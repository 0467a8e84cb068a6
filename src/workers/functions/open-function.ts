import type { AgentConfig } from '../../config/agent.ts'
import type { Config } from '../../config/config.ts'
import type { FunctionAgent } from './calls.ts'

type Function = Extract<AgentConfig, { kind: 'function' }>

export const isFunction = (agent: AgentConfig): agent is Function => agent.kind === 'function'

export function openFunction(
  name: string,
  { body }: Function,
  { policy, approvalMs, prices }: Pick<Config, 'policy' | 'approvalMs' | 'prices'>,
): FunctionAgent {
  return {
    name,
    body,
    policy,
    ...(prices === undefined ? {} : { prices }),
    ...(approvalMs === undefined ? {} : { approvalMs }),
  }
}
