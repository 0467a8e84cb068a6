import { mkdtemp, mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { childProcess } from './node-parts.ts'

type Argv = readonly [string, ...string[]]

export interface Sealing {
  readonly cwd: string
  /** The folders in which it may write; they must be there. */
  readonly writable: readonly string[]
}

/** Whether a command can be kept from writing anywhere else, found by trying it. */
export type Seal =
  | { readonly kind: 'sealed'; readonly detail: string; readonly wrap: (argv: Argv, sealing: Sealing) => Argv }
  | { readonly kind: 'open'; readonly detail: string }

/**
 * In a mount namespace of its own every file system of files becomes read-only, but for the folders that stay writable, which are bound
 * to themselves first. Then it goes into its folder again: the one that it was started in belongs to the mount below. What a device, the
 * kernel's own file systems and other processes do is not what this is about; a program of the same user that wants to get around
 * it finds a way.
 */
const SCRIPT = `
set -eu
back=$1 here=$2 count=$3; shift 3
places='
'
shm=
while [ "$count" -gt 0 ]; do
  case $1 in /dev/shm/*) shm=kept ;; esac
  mount --bind "$1" "$1"
  places="$places$1
"
  shift; count=$((count - 1))
done
if [ -d /dev/shm ] && [ -z "$shm" ]; then mount -t tmpfs tmpfs /dev/shm; fi
while read -r _ _ _ _ point options rest; do
  type=\${rest#*- }; type=\${type%% *}
  case $type in
    proc | sysfs | devtmpfs | devpts | mqueue | cgroup | cgroup2 | nsfs | autofs | hugetlbfs) continue ;;
    fusectl | configfs | securityfs | debugfs | tracefs | bpf | pstore | efivarfs | binfmt_misc | rpc_pipefs) continue ;;
  esac
  case $options in rw | rw,*) ;; *) continue ;; esac
  point=$(printf '%b.' "$point"); point=\${point%.}
  case $point$shm in /dev/shm) continue ;; esac
  case $places in *"
$point
"*) continue ;; esac
  mount -o "remount,bind,ro\${options#rw}" "$point" 2>/dev/null || [ ! -w "$point" ] || {
    echo "holdfast: writing to $point could not be prevented" >&2
    exit 125
  }
done </proc/self/mountinfo
cd "$here"
if [ -n "$back" ]; then exec unshare --user $back -- "$@"; fi
exec "$@"
`

const PRIVATE = ['--mount', '--propagation', 'private'] as const

interface Way {
  readonly detail: string
  readonly flags: readonly string[]
  /** How it becomes itself again, after it was made the owner of the namespace. */
  readonly back: string
}

function ways(): Way[] {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  const asRoot: Way = { detail: 'a mount namespace', flags: PRIVATE, back: '' }
  const asUser: Way = {
    detail: 'a user and a mount namespace',
    flags: ['--user', '--map-root-user', ...PRIVATE],
    back: `--map-user=${uid} --map-group=${gid}`,
  }
  return uid === 0 ? [asRoot, asUser] : [asUser]
}

const wrapIn =
  ({ flags, back }: Way) =>
  (argv: Argv, { cwd, writable }: Sealing): Argv => {
    const places = [String(writable.length), ...writable]
    return ['unshare', ...flags, '--', '/bin/sh', '-c', SCRIPT, 'holdfast-seal', back, cwd, ...places, ...argv]
  }

let found: Promise<Seal> | undefined

export const detectSeal = (): Promise<Seal> => (found ??= detect())

async function detect(): Promise<Seal> {
  if (process.platform !== 'linux') return { kind: 'open', detail: `there is no way to on ${process.platform}` }
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-seal-'))
  const refusals: string[] = []
  try {
    for (const way of ways()) {
      const refusal = await tryWay(way, folder)
      if (refusal === undefined) return { kind: 'sealed', detail: way.detail, wrap: wrapIn(way) }
      refusals.push(`${way.detail} is not to be had: ${refusal}`)
    }
    return { kind: 'open', detail: refusals.join('; ') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const TRY_MS = 10_000

/** Writes inside and outside; undefined: the one went well, the other did not. */
async function tryWay(way: Way, folder: string): Promise<string | undefined> {
  const inside = join(folder, 'inside')
  await mkdir(inside, { recursive: true })
  const script = `touch inside-${process.pid} && ! touch ../outside 2>/dev/null`
  const [program, ...args] = wrapIn(way)(['/bin/sh', '-c', script], { cwd: inside, writable: [inside] })
  return new Promise((resolve) => {
    childProcess().execFile(program, args, { cwd: inside, timeout: TRY_MS }, (error, _, stderr) =>
      resolve(error === null ? undefined : stderr.trim().split('\n')[0] || error.message.split('\n')[0]),
    )
  })
}
