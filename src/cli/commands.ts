import type { Command } from 'commander'

import type { SetExit } from './main.ts'

/** The whole command line, with the command that these words call filled in. */
export type ProgramFor = (words: readonly string[]) => Promise<Command>

/** Gives a command its options, its subcommands and what it does. */
type Fill = (own: Command, setExit: SetExit, programFor: ProgramFor) => void

/**
 * A command as the list of all of them shows it, and where the rest of it is. That is loaded when it is called: the code of
 * all commands takes several times as long to load as Node to start.
 */
type Outlined = readonly [outline: Command, load: () => Promise<Fill>]

export function outlineCommands(program: Command): readonly Outlined[] {
  const named: Named = (name, description) => program.command(name).description(description)
  return [...working(named), ...deciding(named), ...keepingHouse(named)]
}

type Named = (name: string, description: string) => Command

const working = (named: Named): Outlined[] => [
  [
    named('up', 'the daemon and its window, in the foreground: executes queued runs, recovers what was cut off'),
    async () => (await import('./house/up.ts')).addUp,
  ],
  [
    named('run', 'run a command durably: claimed, timed, cancellable, its end recorded once').argument(
      '<command...>',
      'the command, after --',
    ),
    async () => (await import('./runs/run.ts')).addRun,
  ],
  [
    named('send', "put a message into a thread's inbox: to a thread, or with --agent to a new one").argument(
      '<text...>',
      'THREAD TEXT, or with --agent just TEXT',
    ),
    async () => (await import('./threads/send.ts')).addSend,
  ],
  [named('runs', 'what was and is being executed'), async () => (await import('./runs/runs.ts')).addRuns],
  [
    named('workspace', 'what runs did to files: in git transactions that land whole and checked, or not at all'),
    async () => (await import('./runs/workspace.ts')).addWorkspace,
  ],
  [
    named('threads', 'the durable conversations that runs belong to'),
    async () => (await import('./threads/threads.ts')).addThreads,
  ],
  [
    named('inbox', "what waits in a thread's inbox; `holdfast inbox THREAD` lists it and takes nothing"),
    async () => (await import('./threads/inbox.ts')).addInbox,
  ],
  [
    named('schedule', 'what comes by itself: once, at intervals or by cron, each firing with a line in the ledger'),
    async () => (await import('./schedules/schedule.ts')).addSchedules,
  ],
  [
    named('followup', 'messages that come to a thread later, once'),
    async () => (await import('./schedules/followup.ts')).addFollowups,
  ],
]

const deciding = (named: Named): Outlined[] => [
  [
    named('approvals', 'what waits for a yes or a no; in a terminal, one by one'),
    async () => (await import('./decisions/approvals.ts')).addApprovals,
  ],
  [
    named('doubts', 'writes that were cut off: they may or may not have happened'),
    async () => (await import('./decisions/doubts.ts')).addDoubts,
  ],
  [
    named('actions', 'what agents did; `runs statement` lists it'),
    async () => (await import('./runs/actions.ts')).addActions,
  ],
  [
    named('policy', 'which actions are allowed, which ask, which are denied'),
    async () => (await import('./decisions/policy.ts')).addPolicy,
  ],
  [
    named('token', 'who else may come in over HTTP, and how far'),
    async () => (await import('./house/token.ts')).addToken,
  ],
]

const keepingHouse = (named: Named): Outlined[] => [
  [
    named('init', 'write a configuration to begin with, and say what to do next').argument(
      '[folder]',
      'where to (default: the folder of this user, where it is found from everywhere)',
    ),
    async () => (await import('./house/init.ts')).addInit,
  ],
  [
    named('backup', 'a consistent copy of the database, while everything runs; for this user only').argument(
      '<file>',
      'where to; it must not be there yet',
    ),
    async () => (await import('./house/backup.ts')).addBackup,
  ],
  [
    named('restore', 'put a backup in the place of the database; what is there now is kept').argument(
      '<file>',
      'what `holdfast backup` has written',
    ),
    async () => (await import('./house/restore.ts')).addRestore,
  ],
  [
    named(
      'prune',
      'forget runs that ended long ago, with what was recorded of them; into an archive first, if you say so',
    ),
    async () => (await import('./house/prune.ts')).addPrune,
  ],
  [named('status', 'what is going on'), async () => (await import('./house/status.ts')).addStatus],
  [
    named('doctor', 'what is wrong with this installation, and how to mend it'),
    async () => (await import('./house/doctor.ts')).addDoctor,
  ],
  [
    named(
      'demo',
      'the story, played with real processes: kill -9, a rate limit, a tool that will not stop; no keys needed',
    ),
    async () => (await import('./demo/demo.ts')).addDemo,
  ],
  [
    named('completion', 'what makes a shell complete commands, options and ids'),
    async () => (await import('./house/completion.ts')).addCompletion,
  ],
  [
    named('mcp', 'an MCP server on standard input and output: the tools of Holdfast for the agent that starts it'),
    async () => (await import('./clients/mcp.ts')).addMcp,
  ],
  [
    named('mcp-tools', 'the tools of MCP servers: what was accepted, what waits for a yes'),
    async () => (await import('./decisions/mcp-tools.ts')).addMcpTools,
  ],
  [
    named('hooks', 'what makes command-line agents report to Holdfast, in their own settings'),
    async () => (await import('./clients/hooks.ts')).addHooks,
  ],
  [
    named(
      'hook',
      'what a command-line agent calls at its events: reads one from standard input, answers as the agent expects',
    )
      .argument('<client>', 'claude, codex or gemini')
      .argument('[event]', 'the event, for a client that gives it as an argument'),
    async () => (await import('./clients/hook.ts')).addHook,
  ],
]
