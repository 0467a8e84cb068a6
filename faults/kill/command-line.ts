import { newMessageId, systemRandomness as random } from '../../src/base/ids.ts'
import type { RunId, ThreadId } from '../../src/base/ids.ts'
import { findRun } from '../../src/runs/run.ts'
import { acceptMessage } from '../../src/threads/accept.ts'
import { messagesOf } from '../../src/threads/message.ts'
import { openThread } from '../../src/threads/thread.ts'
import { until } from '../../test/support/until.ts'
import { diesWithin } from './daemon.ts'
import { drawDoom } from './points.ts'
import { sleep } from './program.ts'
import type { Ended } from './program.ts'
import type { Scene } from './scene.ts'

/** As long as a command takes. */
const COMMAND_MS = 220
const MOST_TRIES = 3

/** What somebody wants, in words of the command line, and what has to be true of each of its ends. */
interface Wish {
  readonly args: readonly string[]
  /** Of those that were killed too. */
  heard?(ended: Ended): Promise<void> | void
  /** Of the one that was not. */
  granted(ended: Ended): Promise<void> | void
}

const WISHES: readonly ((scene: Scene) => Promise<Wish>)[] = [runHere, runDetached, send, answer, drain, cancel, runNow]

/** Somebody's command dies; they say it again, as anybody would, until it comes to its end. */
export async function killCommand(scene: Scene): Promise<void> {
  const { yard, dice } = scene
  await yard.up()
  const wish = await dice.pick(WISHES)(scene)
  for (let [tries, deaths] = [0, 0]; tries < MOST_TRIES && (deaths === 0 || dice.chance(0.4)); tries++)
    if (await dies(scene, wish)) deaths += 1
  if (dice.chance(0.5)) await scene.look()
  await yard.up()
  const last = await yard.command(wish.args).ended
  await wish.heard?.(last)
  await wish.granted(last)
  await scene.settle()
}

/** False, if it was quicker. */
async function dies(scene: Scene, wish: Wish): Promise<boolean> {
  const { yard, dice } = scene
  const doom = dice.chance(0.5) ? drawDoom(dice, 'command line') : undefined
  const command = yard.command(wish.args, doom)
  const ms = dice.below(COMMAND_MS)
  const together = dice.chance(0.15) && yard.isUp
  await Promise.race([command.ended, sleep(doom === undefined ? ms : COMMAND_MS * 4)])
  const byItself = command.isOver()
  command.kill()
  if (together) await diesWithin(scene, 0, 'with a command')
  const ended = await command.ended
  const isKilled = ended.signal === 'SIGKILL'
  if (isKilled) scene.killed(byItself ? 'command at a named point' : 'command at any moment')
  await wish.heard?.(ended)
  return isKilled
}

/** The JSON that it printed, if it got so far. */
function printed<T>({ stdout }: Ended): T | undefined {
  try {
    return JSON.parse(stdout) as T
  } catch {
    return undefined
  }
}

/** In the foreground: the command line is the worker. Whoever says it again with the same key gets the same run. */
async function runHere(scene: Scene): Promise<Wish> {
  const entry = `h${scene.seed}`
  const args = ['run', '--key', entry, '--', ...scene.yard.entry(entry, scene.dice.below(80))]
  // What was kept for a terminal that is gone was not begun, and says so.
  const granted = async (ended: Ended) => {
    const run = printed<{ id: RunId; state: string; code?: string }>(ended)
    if (run === undefined) return scene.complain(`no run from ${args.join(' ')} (${ended.code}): ${ended.stderr}`)
    const isThere = scene.yard.lines().includes(entry)
    if (run.state === 'succeeded') return void added(scene, run.id, entry)
    if (run.code !== 'lost' || isThere) scene.complain(`${run.id} is ${run.state} (${run.code}); written: ${isThere}`)
  }
  return { args, granted }
}

function added(scene: Scene, id: RunId, entry: string): void {
  scene.runs.push(id)
  scene.entries.set(id, entry)
}

async function runDetached(scene: Scene): Promise<Wish> {
  const entry = `d${scene.seed}`
  const args = ['run', '--detach', '--key', entry, '--', ...scene.yard.entry(entry, scene.dice.below(80))]
  const ids = new Set<RunId>()
  const heard = (ended: Ended) => {
    const run = printed<{ id: RunId }>(ended)
    if (run !== undefined) ids.add(run.id)
  }
  const granted = ({ stderr }: Ended) => {
    if (ids.size !== 1) scene.complain(`one key led to ${ids.size} runs: ${stderr}`)
    for (const id of ids) added(scene, id, entry)
  }
  return { args, heard, granted }
}

async function send(scene: Scene): Promise<Wish> {
  const agent = scene.dice.pick(['plain', 'keyed', 'probed'])
  const thread = `talk-${scene.seed}`
  await scene.yard.withStore((store) => store.apply(openThread, thread as ThreadId, agent, null))
  const args = ['send', thread, 'write', '--key', thread]
  const ids = new Set<string>()
  const runs = new Set<RunId>()
  const heard = (ended: Ended) => {
    const sent = printed<{ message: { id: string }; runId?: RunId }>(ended)
    if (sent !== undefined) ids.add(sent.message.id)
    if (sent?.runId !== undefined) runs.add(sent.runId)
  }
  const granted = async ({ stderr }: Ended) => {
    const messages = await scene.yard.withStore((store) => store.read(messagesOf, thread as ThreadId))
    if (ids.size !== 1 || messages.length !== 1)
      scene.complain(`one key led to ${ids.size} messages, ${messages.length} are there: ${stderr}`)
    if (runs.size !== 1) scene.complain(`one message led to ${runs.size} runs`)
    scene.runs.push(...runs)
  }
  return { args, heard, granted }
}

async function answer(scene: Scene): Promise<Wish> {
  const [id = ''] = await scene.waiting()
  const verb = scene.answerTo(id)
  let times = 0
  const heard = ({ code }: Ended) => {
    if (code !== 0) return
    times += 1
    scene.heard(id)
  }
  const granted = ({ code, stderr }: Ended) => {
    // Refused, because it was answered before: by one that was killed before it could say so.
    if (code !== 0 && code !== 4) scene.complain(`${verb} ended with ${code}: ${stderr}`)
    if (times > 1) scene.complain(`${id} was answered ${times} times`)
    scene.heard(id)
  }
  return { args: ['approvals', verb, id], heard, granted }
}

/** Of a parent's inbox: what a drain that came to its end has shown is shown by no other; what was shown by none waits. */
async function drain(scene: Scene): Promise<Wish> {
  const thread = `inbox-${scene.seed}` as ThreadId
  const count = 1 + scene.dice.below(4)
  await scene.yard.withStore(async (store) => {
    await store.apply(openThread, thread, 'nobody', null)
    for (let index = 0; index < count; index++) {
      const id = newMessageId(random)
      const body = { summary: `words of ${index}` }
      await store.apply(acceptMessage, { id, threadId: thread, kind: 'completion', key: id, body })
    }
  })
  const [seen, taken] = [new Set<string>(), new Set<string>()]
  const heard = (ended: Ended) => {
    const ids = printed<{ messages: { id: string }[] }>(ended)?.messages.map(({ id }) => id) ?? []
    for (const id of ids) {
      if (taken.has(id)) scene.complain(`${id} was drained, and drained again`)
      seen.add(id)
      if (ended.code === 0) taken.add(id)
    }
  }
  const granted = async ({ code, stderr }: Ended) => {
    if (code !== 0) scene.complain(`drain ended with ${code}: ${stderr}`)
    const messages = await scene.yard.withStore((store) => store.read(messagesOf, thread))
    const lost = messages.filter(({ id, state }) => state === 'consumed' && !seen.has(id))
    for (const { id } of lost) scene.complain(`${id} is consumed, and nobody has seen it`)
    if (messages.some(({ state }) => state !== 'consumed')) scene.complain('a message is left after the last drain')
  }
  return { args: ['inbox', 'drain', thread], heard, granted }
}

async function cancel(scene: Scene): Promise<Wish> {
  const { yard } = scene
  const id = await yard.withStore((store) => scene.command(store, `x${scene.seed}`, 60_000))
  if (scene.dice.chance(0.7)) await sleep(scene.dice.below(250))
  const granted = async ({ code, stderr }: Ended) => {
    const run = await yard.withStore((store) => store.read(findRun, id))
    if (run?.state !== 'cancelled') scene.complain(`${id} was cancelled (${code}) and is ${run?.state}: ${stderr}`)
    if (yard.lines().includes(`x${scene.seed}`)) scene.complain(`${id} was cancelled and went on`)
  }
  return { args: ['runs', 'cancel', id], granted }
}

/** A schedule fires out of turn: the same key is the same firing. */
async function runNow(scene: Scene): Promise<Wish> {
  const { yard } = scene
  const entry = `s${scene.seed}`
  // Its run is named by nobody here.
  scene.entries.set(`run of ${entry}` as RunId, entry)
  const made = await yard.command(['schedule', 'add', entry, '--every', '1h', '--', ...yard.entry(entry, 0)]).ended
  if (made.code !== 0) scene.complain(`schedule add ended with ${made.code}: ${made.stderr}`)
  const isDone = async () => (yard.lines().includes(entry) ? true : undefined)
  const granted = async ({ code, stderr }: Ended) => {
    if (code !== 0) scene.complain(`run-now ended with ${code}: ${stderr}`)
    await until(`${entry} has fired`, isDone).catch((error: Error) => scene.complain(error.message))
  }
  return { args: ['schedule', 'run-now', entry, '--key', entry], granted }
}
