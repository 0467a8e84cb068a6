import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { actionsOfThread } from '../../actions/action.ts'
import type { Tool, ToolContext, ToolOutcome } from '../../loop/ports.ts'
import { readSpec } from '../../processes/attempt-folder.ts'
import type { Claim } from '../../runs/claim.ts'
import { judgeOutcome, recoverCommand } from '../../tools/supervised-command.ts'
import { untilStored } from '../execute.ts'
import type { Executor } from '../execute.ts'
import type { OpenAgent } from './execute-agent.ts'

/**
 * Stands in for an agent that this process does not have, to bring a cancelled run of it to its end: it asks no model and
 * performs nothing. What was under way is ended; what it did nobody here can say.
 */
export async function goneAgent(executor: Executor, { run }: Claim): Promise<OpenAgent> {
  // What it began may have been asked for by an earlier run of its thread.
  const actions = await untilStored(executor, () => executor.store.read(actionsOfThread, run.threadId))
  const tools = new Map(actions.map(({ tool }) => [tool, goneTool(tool)]))
  const ask = () => Promise.reject(new Error(`there is no agent ${run.agent} in this process`))
  return { name: run.agent, system: '', ask, tools, policy: [] }
}

const goneTool = (name: string): Tool => ({
  name,
  description: '',
  inputSchema: {},
  effect: 'write',
  repeat: 'each',
  timeoutMs: 0,
  idempotent: false,
  identity: (input) => input,
  validate: (input) => ({ input }),
  perform: () => Promise.resolve({ kind: 'failed', error: GONE, unbegun: true }),
  recover: endCommands,
})

const GONE = 'its agent is not there any more'
const UNSAID: ToolOutcome = { kind: 'in-doubt', error: GONE }

/** The signal is aborted, so that what still runs is told to stop. A tool may have several commands, each in a folder inside of its own. */
async function endCommands(context: ToolContext): Promise<ToolOutcome> {
  const inside = await readdir(context.folder, { withFileTypes: true })
  const folders = inside.filter((each) => each.isDirectory()).map(({ name }) => join(context.folder, name))
  for (const folder of [context.folder, ...folders]) {
    const mark = readSpec(folder)?.mark
    if (mark === undefined) continue
    // Where it is out of sight it may still run: then this throws, and it is tried again.
    judgeOutcome(await recoverCommand(context, folder, mark), context.signal, () => UNSAID)
  }
  return UNSAID
}
