import { describe, expect, test } from 'vitest'

import { newRunId, systemRandomness as random } from '../../src/base/ids.ts'
import type { ThreadId } from '../../src/base/ids.ts'
import type { Asked, ModelMessage, ModelRequest } from '../../src/loop/ports.ts'
import { readSession } from '../../src/loop/session.ts'
import { cancelRun } from '../../src/runs/cancel.ts'
import { submitRun } from '../../src/runs/submit.ts'
import { recordSummary } from '../../src/runs/turn.ts'
import { entriesOfRun } from '../../src/threads/conversation.ts'
import { engines } from '../support/engines.ts'
import { assertInvariants } from '../support/invariants.ts'
import { Stage, nothing, replied, results, usage } from '../support/stage.ts'
import type { StagedReply } from '../support/stage.ts'
import { reread } from '../support/world.ts'

/** A window of 8,000 characters, of which 6,400 may be filled. */
const WINDOW = 2_000
const FULL = 6_400
const PROMPT = 'Look at everything, and keep the number 4711 in mind.'

const look = (index: number): StagedReply => ({ calls: [['look', { entry: `page ${index}` }]], usage: nothing })
const looks = (count: number): StagedReply[] => [
  ...Array.from({ length: count }, (_, index) => look(index)),
  { text: 'All seen.', usage: nothing },
]
const page = (entry: string) => ({ kind: 'done', result: `${entry}: ${'word '.repeat(180)}` }) as const
const sizeOf = ({ messages }: ModelRequest) => JSON.stringify(messages).length
const opening = (request: ModelRequest | undefined) => request?.messages[0]?.text ?? ''

/** Every result has its call before it and every call its result, as providers insist. */
function unpaired(messages: readonly ModelMessage[]): string[] {
  const open = new Set<string>()
  const wrong: string[] = []
  for (const message of messages) {
    if (message.role === 'tool' && !open.delete(message.callId))
      wrong.push(`a result without a call: ${message.callId}`)
    if (message.role !== 'tool') wrong.push(...[...open].map((call) => `a call without a result: ${call}`))
    if (message.role === 'assistant') for (const { id } of message.toolCalls) open.add(id)
  }
  return wrong
}

describe.each(engines)('a conversation that outgrows the window, on $name', (engine) => {
  const open = async (count = 12) => {
    const stage = new Stage(await (await engine.database()).open())
    stage.contextTokens = WINDOW
    stage.replies = looks(count)
    stage.perform = (entry) => Promise.resolve(page(entry))
    return stage
  }
  const begun = async (stage: Stage) => {
    await stage.send(PROMPT)
    return stage.claim()
  }
  const summaries = async (stage: Stage, runId: Parameters<typeof reread>[1]) =>
    (await stage.store.read(entriesOfRun, runId)).filter(({ kind }) => kind === 'summary')

  test('is compacted by recorded steps, on the bill, and goes on to its end', async () => {
    const stage = await open()
    let told = 0
    stage.aside = () =>
      Promise.resolve(replied(`Summary ${++told}.`, { inputTokens: 900, outputTokens: 50, costMicrousd: 7 }))
    const claim = await begun(stage)
    expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded', result: { text: 'All seen.' } })
    expect(stage.effects).toHaveLength(12)
    expect(told).toBeGreaterThanOrEqual(2)
    expect(await summaries(stage, claim.run.id)).toHaveLength(told)
    expect(await reread(stage.store, claim.run.id)).toMatchObject({ inputTokens: 900 * told, costMicrousd: 7 * told })
    for (const request of stage.asked) {
      expect(unpaired(request.messages)).toEqual([])
      expect(sizeOf(request)).toBeLessThan(FULL * 1.3)
    }
    const last = stage.asked.at(-1)!
    expect(opening(last)).toContain(`Summary ${told}.`)
    expect(opening(last)).toContain(PROMPT)
    expect(last.replies).toBe(12)
    expect(stage.asides[1]?.messages[0]?.text).toContain('Summary 1.')
    await assertInvariants(stage.store)
  })

  test("is measured by the provider's own count where there is one", async () => {
    const stage = await open(3)
    const counted = { inputTokens: WINDOW * 0.7, outputTokens: 10, costMicrousd: 1 }
    stage.replies = [look(0), { ...look(1), usage: counted }, { text: 'seen', usage: nothing }]
    await stage.finished(await begun(stage))
    expect(stage.asides).toHaveLength(1)
    const small = await open(3)
    small.replies = looks(3).map((reply) => ({ ...reply, usage: { ...nothing, inputTokens: 100 } }))
    await small.finished(await begun(small))
    expect(small.asides).toHaveLength(0)
  })

  test('read again by another worker, is what the model was last shown, and nothing before the summary is read', async () => {
    const stage = await open()
    const claim = await begun(stage)
    stage.answer = ({ replies }) => (replies === 10 ? new Promise(() => {}) : undefined)
    void stage.run(claim)
    await expect.poll(() => stage.asked.at(-1)?.replies, { timeout: 15_000 }).toBe(10)
    const taken = await stage.takeOver(claim)
    const session = await stage.store.read(readSession, taken.run)
    // The last reply's results are still open when it is read.
    session.answer(session.open)
    expect(session.messages).toEqual(stage.asked.at(-1)?.messages)
    expect({ replies: session.replies, turns: session.turns, prompt: session.prompt }).toEqual({
      replies: 10,
      turns: 10,
      prompt: PROMPT,
    })
    expect(session.messages.length).toBeLessThan(15)
    stage.answer = () => undefined
    expect(await stage.finished(taken)).toMatchObject({ state: 'succeeded', result: { text: 'All seen.' } })
    expect(stage.effects).toHaveLength(12)
  })

  test('killed between the side call and its record: the call is made again, and nothing else', async () => {
    const stage = await open()
    const claim = await begun(stage)
    stage.aside = () => new Promise(() => {})
    void stage.run(claim)
    await expect.poll(() => stage.asides.length, { timeout: 15_000 }).toBe(1)
    const before = stage.asked.length
    expect(await summaries(stage, claim.run.id)).toEqual([])
    stage.aside = () => Promise.resolve(replied('Once more.'))
    const taken = await stage.takeOver(claim)
    expect(await stage.finished(taken)).toMatchObject({ state: 'succeeded' })
    expect(opening(stage.asked[before])).toContain('Once more.')
    expect(stage.asked.map(({ replies }) => replies)).toEqual(Array.from({ length: 13 }, (_, index) => index))
    expect(stage.effects).toHaveLength(12)
    await assertInvariants(stage.store)
  })

  test('a worker that was superseded records no summary; the same one twice is one [runs/fenced]', async () => {
    const stage = await open()
    const claim = await begun(stage)
    const ref = { id: claim.attempt.id, runId: claim.run.id, fence: claim.run.fence }
    const summary = { id: 'a', generation: 1, body: { text: 'x', covers: 0, replies: 0, prompt: '' }, usage: nothing }
    const first = await stage.store.apply(recordSummary, ref, summary)
    expect(await stage.store.apply(recordSummary, ref, summary)).toEqual(first)
    await stage.takeOver(claim)
    expect(await stage.store.apply(recordSummary, ref, { ...summary, id: 'b' })).toEqual({ kind: 'superseded' })
    expect(await summaries(stage, claim.run.id)).toHaveLength(1)
  })

  const failing: readonly [string, Asked][] = [
    ['fails', { kind: 'failed', code: 'model', error: 'no', spent: { ...nothing, costMicrousd: 5 } }],
    ['refuses', { kind: 'replied', reply: { text: 'No.', toolCalls: [], usage, finish: 'refusal' }, spent: usage }],
    ['answers with nothing', replied('  ')],
  ]
  test.each(failing)(
    'a side call that %s is done without: by its ends, and the thread is not stuck [T8]',
    async (_, asked) => {
      const stage = await open()
      stage.aside = () => Promise.resolve(asked)
      const claim = await begun(stage)
      expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded' })
      const made = await summaries(stage, claim.run.id)
      expect(made.every(({ body }) => body.made === 'outline')).toBe(true)
      expect(opening(stage.asked.at(-1))).toMatch(/RESULT of look: page \d/)
      const { costMicrousd } = await reread(stage.store, claim.run.id)
      expect(costMicrousd).toBe(asked.spent.costMicrousd * made.length)
      for (const request of stage.asked) expect(sizeOf(request)).toBeLessThan(FULL * 1.3)
    },
  )

  test('a side call that must wait parks the run with what it cost, one that is cancelled stops it', async () => {
    const spent = { ...nothing, costMicrousd: 3 }
    const stage = await open()
    stage.aside = () => Promise.resolve({ kind: 'park', until: 5, reason: 'a rate limit', spent })
    expect(await stage.run(await begun(stage))).toEqual({ kind: 'parked', until: 5, reason: 'a rate limit', spent })
    const other = await open()
    other.aside = () => Promise.resolve({ kind: 'cancelled', spent })
    expect(await other.run(await begun(other))).toEqual({ kind: 'stopped', why: 'cancel-requested', spent })
  })

  test('what it costs to compact counts towards the limits', async () => {
    const stage = await open()
    stage.limits = { costMicrousd: 1_000 }
    stage.aside = () => Promise.resolve(replied('dear', { ...nothing, costMicrousd: 1_000 }))
    expect(await stage.finished(await begun(stage))).toMatchObject({ state: 'failed', code: 'budget' })
    expect(stage.asides).toHaveLength(1)
  })

  test('what is open comes first: children at work and doubts, as they are when it is shown', async () => {
    const stage = await open()
    stage.replies = [{ calls: [['append', { entry: 'the unclear one' }]], usage: nothing }, ...looks(12)]
    stage.perform = (entry) =>
      entry === 'the unclear one' ? Promise.reject(new Error('cut off')) : Promise.resolve(page(entry))
    const claim = await begun(stage)
    const child = newRunId(random)
    await stage.store.apply(submitRun, {
      id: child,
      threadId: 'child-thread' as ThreadId,
      agent: 'helper',
      request: { kind: 'command', argv: ['true'], cwd: '/' },
      parentThreadId: stage.threadId,
    })
    stage.aside = () => Promise.resolve(replied('nothing is said of what is open'))
    stage.answer = ({ replies }) => (replies === 9 ? new Promise(() => {}) : undefined)
    void stage.run(claim)
    await expect.poll(() => stage.asked.at(-1)?.replies, { timeout: 15_000 }).toBe(9)
    const shown = opening(stage.asked.at(-1))
    expect(shown).toMatch(/^\[Open at this moment\]\n- child child-thread \(helper\), run run_\w+: queued\n- in doubt/)
    expect(shown).toContain('append {"entry":"the unclear one"}')
    await stage.store.apply(cancelRun, child, { by: 'tester' })
    const again = await stage.store.read(readSession, (await stage.takeOver(claim)).run)
    expect(again.messages[0]?.text).toMatch(/^\[Open at this moment\]\n- in doubt/)
  })

  test('one reply whose results alone are more than the window is shown in part', async () => {
    const stage = await open()
    const calls = Array.from({ length: 6 }, (_, index) => ['look', { entry: `${index}` }] as const)
    stage.replies = [
      { calls, usage: nothing },
      { text: 'seen', usage: nothing },
    ]
    stage.perform = (entry) =>
      Promise.resolve({ kind: 'done', result: `begin ${entry}${'x'.repeat(5_000)}end ${entry}` })
    const claim = await begun(stage)
    expect(await stage.finished(claim)).toMatchObject({ state: 'succeeded' })
    expect(sizeOf(stage.asked[1]!)).toBeLessThan(FULL * 1.3)
    expect(results(stage.asked[1]!)[5]).toMatch(/^begin 5x+\n… \d+ characters left out …\nx+end 5$/)
  })

  test('a provider that says it is too long is believed, once', async () => {
    const stage = await open(4)
    stage.contextTokens = 100_000
    const refused: Asked = { kind: 'failed', code: 'model', error: 'too long', tooLong: true, spent: nothing }
    stage.answer = ({ messages }) => (messages.length > 7 ? Promise.resolve(refused) : undefined)
    expect(await stage.finished(await begun(stage))).toMatchObject({ state: 'succeeded' })
    expect(stage.asides).toHaveLength(1)
    const hopeless = await open(4)
    hopeless.answer = () => Promise.resolve(refused)
    expect(await hopeless.finished(await begun(hopeless))).toMatchObject({
      state: 'failed',
      code: 'model',
      error: 'too long',
    })
    expect(hopeless.asked).toHaveLength(1)
  })
})
