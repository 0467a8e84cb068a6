import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { inCgroup, prepareCgroup, removeCgroup, type CgroupPlan } from './cgroup.ts'
import type { Containment, ContainmentChoice, ContainmentKind } from './command.ts'
import { withDumps } from './crash-dumps.ts'
import { childProcess } from './node-parts.ts'
import { enterNamespace, openNamespace, type Namespace } from './pid-namespace.ts'
import { readProcess } from './process-table.ts'
import type { Root, Trail } from './trail.ts'

export interface Launch {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stdio: readonly ['inherit' | number, number, number]
}

export interface Launched {
  readonly child: ChildProcess
  readonly trail: Trail
}

/** What will hold the processes of one command together; made before the command, because making it may fail. */
export interface Enclosure {
  readonly containment: Containment
  /** Starts the command inside. Rejects with the system's error when it cannot be started. */
  launch(launch: Launch): Promise<Launched>
  /** For an enclosure that nothing was launched in. */
  discard(): void
}

/** For which command, and with what. */
export interface Wanted {
  readonly mark: string
  readonly cwd: string
  readonly cgroup: CgroupPlan | undefined
}

const ORDER: Record<'linux' | 'elsewhere', readonly ContainmentKind[]> = {
  linux: ['cgroup', 'pid-namespace', 'mark'],
  elsewhere: ['group'],
}

/** The best that this machine allows. In a forced choice that is not possible every launch is refused. */
export async function openEnclosure(choice: ContainmentChoice, wanted: Wanted): Promise<Enclosure> {
  const order = process.platform === 'linux' ? ORDER.linux : ORDER.elsewhere
  const refusals: string[] = []
  for (const kind of choice === 'auto' ? order : [choice]) {
    const opened = await OPENERS[kind](wanted, refusals)
    if (typeof opened !== 'string') return opened
    refusals.push(`no ${kind}: ${opened}`)
  }
  return impossible(choice as ContainmentKind, refusals.join('; '))
}

const impossible = (kind: ContainmentKind, detail: string): Enclosure => ({
  containment: { kind, detail },
  launch: () => Promise.reject(new Error(detail)),
  discard: () => {},
})

type Opener = (wanted: Wanted, refusals: readonly string[]) => Promise<Enclosure | string>

const OPENERS: Record<ContainmentKind, Opener> = {
  cgroup: openCgroup,
  'pid-namespace': openPidNamespace,
  // What left its group and session, lost its parent and cleared its environment is not found: the price of no help.
  mark: async ({ mark }, refusals) =>
    bare({ kind: 'mark', detail: because('found by environment mark', refusals) }, mark),
  group: async ({ mark }) => bare({ kind: 'group', detail: 'process group, then a sweep by environment mark' }, mark),
}

const because = (what: string, refusals: readonly string[]) => [what, ...refusals].join('; ')

async function openCgroup({ mark, cgroup }: Wanted): Promise<Enclosure | string> {
  if (cgroup === undefined) return 'no cgroup version 2 tree is mounted'
  const refusal = await prepareCgroup(cgroup)
  if (refusal !== undefined) return refusal
  const { own, forCommand } = cgroup
  return {
    containment: { kind: 'cgroup', detail: `cgroup version 2 below ${own}` },
    launch: (launch) => start(launch, { mark, cgroup: forCommand }, (begin) => inCgroup(cgroup, begin)),
    discard: () => removeCgroup(forCommand),
  }
}

async function openPidNamespace({ mark, cwd }: Wanted, refusals: readonly string[]): Promise<Enclosure | string> {
  const namespace = await openNamespace(mark, cwd)
  if (typeof namespace === 'string') return namespace
  return {
    containment: { kind: 'pid-namespace', detail: because(namespace.detail, refusals) },
    launch: (launch) => start(within(namespace, launch), { mark, holder: namespace.holder }),
    // Its holder ends with us.
    discard: () => {},
  }
}

const within = (namespace: Namespace, launch: Launch): Launch => ({
  ...launch,
  ...enterNamespace(namespace, [launch.program, ...launch.args]),
})

const bare = (containment: Containment, mark: string): Enclosure => ({
  containment,
  launch: (launch) => start(launch, { mark }),
  discard: () => {},
})

type Around = (begin: () => ChildProcess) => ChildProcess

async function start(
  { program, args, cwd, env, stdio }: Launch,
  known: { readonly mark: string; readonly cgroup?: string; readonly holder?: Root },
  around: Around = (begin) => begin(),
): Promise<Launched> {
  const child = around(() =>
    withDumps(() => childProcess().spawn(program, [...args], { cwd, env, stdio: [...stdio], detached: true })),
  )
  await once(child, 'spawn')
  const leader = rootOf(child)
  const since = known.holder?.startTime ?? leader.startTime
  return {
    child,
    trail: { mark: known.mark, since, leader, cgroup: known.cgroup ?? null, holder: known.holder ?? null },
  }
}

/** Its row is there until we are told of its exit, even when it is over already. */
function rootOf(child: ChildProcess): Root {
  const pid = child.pid as number
  return { pid, startTime: readProcess(pid)?.startTime ?? 0 }
}
