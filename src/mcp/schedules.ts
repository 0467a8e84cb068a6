import type { ActionId } from '../base/ids.ts'
import type { Tool } from '../loop/ports.ts'
import { followupTools } from '../tools/schedule-followup.ts'
import { manageJobsTool } from '../tools/schedule-jobs.ts'
import { turnOf } from './caller.ts'
import { ADDS, KEY, LOOKS, done, failed, numberFor } from './tool.ts'
import type { Answer, Call, Desk, Hints, ServedTool } from './tool.ts'

/* The same tools that an agent of ours has. The request takes the place of the action: all ids come from its number. */

const TAKES_AWAY: Hints = { ...ADDS, destructiveHint: true }

const HINTS: Readonly<Record<string, { readonly title: string; readonly hints: Hints }>> = {
  // A second one takes the place of the first.
  schedule_followup: { title: 'Schedule a follow-up', hints: TAKES_AWAY },
  list_followups: { title: 'List follow-ups', hints: LOOKS },
  cancel_followup: { title: 'Cancel a follow-up', hints: { ...TAKES_AWAY, idempotentHint: true } },
  // It may start agents, again and again, and take jobs away.
  manage_jobs: { title: 'Manage jobs', hints: { ...TAKES_AWAY, openWorldHint: true } },
  list_jobs: { title: 'List jobs', hints: LOOKS },
}

export function scheduleTools(desk: Desk): ServedTool[] {
  const [follow, listFollowups, cancel] = followupTools({ ...desk, agent: '' })
  const jobs = jobsTool(desk, '')
  const served = [follow, listFollowups, cancel, jobs].flatMap((tool) =>
    tool === undefined ? [] : [serve(desk, tool)],
  )
  return [...served, listJobs(desk, jobs)]
}

/** Jobs of a session are turns of its own, and tasks for agents; a command it can run itself. */
const jobsTool = (desk: Desk, agent: string): Tool =>
  manageJobsTool({
    ...desk,
    agent,
    place: { cwd: desk.folder, env: desk.environment },
    commands: false,
  })

function serve(desk: Desk, { name, description, inputSchema, effect }: Tool): ServedTool {
  const properties = inputSchema['properties'] as object
  const schema = effect === 'read' ? inputSchema : { ...inputSchema, properties: { ...properties, key: KEY } }
  const { title, hints } = HINTS[name] ?? { title: name, hints: TAKES_AWAY }
  const call = (input: Readonly<Record<string, unknown>>, which: Call) => perform(desk, name, input, which)
  return { name, title, description, inputSchema: schema, hints, call }
}

function listJobs(desk: Desk, { name }: Tool): ServedTool {
  const { title, hints } = HINTS['list_jobs'] ?? { title: name, hints: LOOKS }
  const inputSchema = { type: 'object', properties: {}, additionalProperties: false }
  const call = (_: unknown, which: Call) => perform(desk, name, { action: 'list' }, which)
  return {
    name: 'list_jobs',
    title,
    description: 'Your jobs, with what became of the last firing.',
    inputSchema,
    hints,
    call,
  }
}

/** Made for each call: whose tools they are is known only then. */
function toolOf(desk: Desk, name: string, agent: string): Tool | undefined {
  return [...followupTools({ ...desk, agent }), jobsTool(desk, agent)].find((tool) => tool.name === name)
}

async function perform(
  desk: Desk,
  name: string,
  given: Readonly<Record<string, unknown>>,
  call: Call,
): Promise<Answer> {
  const { caller, signal } = call
  const run = turnOf(caller)
  const tool = toolOf(desk, name, caller.thread.agent)
  if (tool === undefined) return failed(`there is no tool ${name}`)
  const { key: _, ...input } = given
  const valid = tool.validate(input)
  if ('error' in valid) return failed(valid.error)
  const outcome = await tool.perform(valid.input, {
    signal,
    clock: desk.clock,
    key: `act_${numberFor(desk, name, call)}` as ActionId,
    threadId: caller.thread.id,
    runId: run.id,
    folder: desk.folder,
    mark: '',
    fence: 0,
    deadline: desk.clock.now() + tool.timeoutMs,
  })
  return outcome.kind === 'done' ? done(outcome.result) : failed(outcome.error)
}
