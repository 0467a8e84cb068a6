import { messagesOf } from '../../src/threads/message.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import { corruptRecords } from '../../src/hooks/spool.ts'
import { until } from '../../test/support/until.ts'
import { diesWithin, recoverUnderFire } from './daemon.ts'
import { drawDoom } from './points.ts'
import { sleep } from './program.ts'
import type { Started } from './program.ts'
import type { Scene } from './scene.ts'

/** As long as the command of a hook takes. */
const HOOK_MS = 120

const POINTS_OF = {
  daemon: 'hook with a daemon',
  store: 'hook with the store',
  spool: 'hook with the spool',
} as const

/** Turns of several sessions end at once; their hooks die, and perhaps the daemon that they told. */
export async function killHook(scene: Scene): Promise<void> {
  const { yard, dice } = scene
  await yard.up()
  const parent = `parent-${scene.seed}`
  await yard.hook(says('SessionStart', parent, { source: 'startup' }), {}).ended
  // Without a daemon it is told to the store, and without that there is only the spool.
  const told = dice.pick(['daemon', 'daemon', 'store', 'spool'] as const)
  if (told !== 'daemon') await diesWithin(scene, 0, 'with a hook')
  const ends = Array.from({ length: 2 + dice.below(2) }, (_, index) => ({
    words: `words of ${scene.seed}.${index}`,
    index,
  }))
  const dying = ends.map(async ({ words, index }) => {
    const isDoomed = index === 0 || dice.chance(0.3)
    const doom = isDoomed && dice.chance(0.5) ? drawDoom(dice, POINTS_OF[told]) : undefined
    const ms = isDoomed && doom === undefined ? dice.below(HOOK_MS) : undefined
    const hook = yard.hook(stopSays(`child-${scene.seed}-${index}`, words), {
      thread: `claude-${parent}`,
      noStore: told === 'spool',
      ...(doom === undefined ? {} : { doom }),
    })
    return { words, ...(await howItEnds(scene, hook, ms)) }
  })
  if (told === 'daemon' && dice.chance(0.4)) await diesWithin(scene, dice.below(HOOK_MS), 'with a hook')
  const ended = await Promise.all(dying)
  await scene.begin(1)
  await recoverUnderFire(scene)
  await checkInbox(scene, `claude-${parent}` as ThreadId, ended)
}

interface EndOfHook {
  readonly words: string
  /** It was killed before it could say what became of it. */
  readonly died: boolean
}

async function howItEnds(scene: Scene, hook: Started, ms: number | undefined): Promise<{ readonly died: boolean }> {
  if (ms !== undefined) {
    await Promise.race([hook.ended, sleep(ms)])
    hook.kill()
  }
  const { signal, code, stderr } = await hook.ended
  const died = signal === 'SIGKILL'
  if (died) scene.killed(ms === undefined ? 'hook at a named point' : 'hook at any moment')
  else if (code !== 0 && code !== 1) scene.complain(`a hook ended with ${signal ?? code}: ${stderr}`)
  else if (stderr.includes('LOST')) scene.complain(`a hook lost its event: ${stderr}`)
  return { died }
}

/** What a hook came to its end with is there once; what it died with, once at most. */
async function checkInbox(scene: Scene, parent: ThreadId, ended: readonly EndOfHook[]): Promise<void> {
  const { yard } = scene
  await until('the spool is empty', async () => (yard.spooled().length === 0 ? true : undefined)).catch(() =>
    scene.complain(`left in the spool: ${yard.spooled().join(', ')}`),
  )
  const messages = await yard.withStore((store) => store.read(messagesOf, parent))
  for (const { words, died } of ended) {
    const times = messages.filter(({ body }) => body['summary'] === words).length
    if (times > 1) scene.complain(`"${words}" came ${times} times`)
    if (times === 0 && !died) scene.complain(`"${words}" was told and is lost`)
  }
  for (const { path, why } of await corruptRecords(yard.home)) scene.complain(`${path} was set aside: ${why}`)
}

/** What Claude Code says at an event. */
const says = (event: string, session: string, more: object) => ({
  session_id: session,
  prompt_id: 'p1',
  hook_event_name: event,
  transcript_path: '/nowhere/transcript.jsonl',
  cwd: '/',
  ...more,
})

const stopSays = (session: string, words: string) =>
  says('Stop', session, {
    stop_hook_active: false,
    last_assistant_message: words,
    background_tasks: [],
    session_crons: [],
  })
