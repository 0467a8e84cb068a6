import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { childProcess } from './node-parts.ts'
import { nestMark, MARK_VARIABLE, readProcess } from './process-table.ts'
import type { Root } from './trail.ts'

/*
 * A PID namespace dies as a whole with its first process, whatever the others did to get away. That first process must
 * not be the command itself: the kernel shields it from signals, and a shell around the command could not tell "exit
 * 137" from "killed". So a small shell holds the namespace, and `nsenter` brings the command in and ends the way the
 * command ended.
 *
 * The command sees a different world there: process numbers start anew, /proc shows only its own processes (it is
 * mounted anew, in a mount namespace, because numbers of outside would be worse), it cannot signal what runs outside,
 * and mounts it makes are seen by nobody else. Without root there is a user namespace as well, where sudo fails.
 */
export interface Namespace {
  readonly holder: Root
  readonly detail: string
  readonly user: boolean
}

// The holder ends with its standard input, that is with the supervisor. `wait` collects orphans meanwhile. The inner
// shell survives being asked to end, for it would take the namespace with it.
const HOLD = 'exec 3<&0; (trap "" TERM INT HUP; echo held; read _ <&3) & wait $!'

/** Makes a namespace, or says why not. */
export async function openNamespace(mark: string, cwd: string): Promise<Namespace | string> {
  const user = process.getuid?.() !== 0
  const flags = ['--pid', '--fork', '--kill-child', '--mount-proc', ...(user ? ['--user', '--map-current-user'] : [])]
  const env = { PATH: process.env.PATH, [MARK_VARIABLE]: nestMark(undefined, mark) }
  const holder = childProcess().spawn('unshare', [...flags, 'sh', '-c', HOLD], {
    cwd,
    env,
    stdio: 'pipe',
    detached: true,
  })
  const refusal = await refusalOf(holder)
  if (refusal !== undefined) return refusal
  const pid = holder.pid as number
  const detail = user ? 'PID namespace inside a user namespace' : 'PID namespace'
  const namespace = { holder: { pid, startTime: readProcess(pid)?.startTime ?? 0 }, detail, user }
  return (await cannotEnter(namespace, env)) ?? namespace
}

/** A dry run: a command that failed only because it could not be brought in would look as if it had failed itself. */
async function cannotEnter(namespace: Namespace, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { program, args } = enterNamespace(namespace, ['/bin/sh', '-c', ':'])
  return promisify(childProcess().execFile)(program, args, { env }).then(
    () => undefined,
    (error: Error) => {
      killGroup(namespace.holder.pid)
      return error.message
    },
  )
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // It is gone already.
  }
}

async function refusalOf(holder: ChildProcess): Promise<string | undefined> {
  const complaint: Buffer[] = []
  holder.stdin?.on('error', () => {})
  holder.stderr?.on('data', (chunk: Buffer) => complaint.push(chunk))
  const held = holder.stdout === null ? Promise.reject(new Error('no pipe')) : once(holder.stdout, 'data')
  const ended = once(holder, 'close').then(() => Promise.reject(new Error(Buffer.concat(complaint).toString().trim())))
  try {
    await Promise.race([held, ended])
    ended.catch(() => {})
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** The program that brings `argv` in: it enters by files of the holder, which is outside itself but made the inside. */
export function enterNamespace(
  { holder, user }: Namespace,
  argv: readonly string[],
): { readonly program: string; readonly args: readonly string[] } {
  const inside = `--pid=/proc/${holder.pid}/ns/pid_for_children`
  const asUs = user ? ['--user', '--preserve-credentials'] : []
  // Entering a mount namespace leads to its root folder; --wd goes on to the holder's, which is the command's.
  const args = ['--target', String(holder.pid), ...asUs, inside, '--mount', '--wd', '--', 'setsid', ...argv]
  return { program: 'nsenter', args }
}
