import { check } from './act.ts'
import type { Act } from './act.ts'
import { TOKENS_A_CALL, TOLD_SECONDS } from './script.ts'

export interface RateLimitFacts {
  readonly runId: string
  readonly state: string
  readonly toldMs: number
  readonly waitedMs: number
  readonly modelCalls: number
}

const CALLS = 2

export const rateLimit: Act<RateLimitFacts> = {
  name: 'rate-limit',
  title: 'A rate limit is waited out',

  async play(stage, tell) {
    await stage.up()
    const runId = await stage.send('poet', 'A line, please.')
    tell(`The model answers the first call with 429 and "Retry-After: ${TOLD_SECONDS}".`)
    const run = await stage.ended(runId)
    const waitedMs = Date.parse(run.endedAt) - Date.parse(run.startedAt)
    const modelCalls = run.usage.inputTokens / TOKENS_A_CALL
    const waited = (waitedMs / 1_000).toFixed(1)
    tell(`Told to wait ${TOLD_SECONDS} s, it waited ${waited} s and called ${modelCalls} times in all: ${run.state}.`)
    return { runId, state: run.state, toldMs: TOLD_SECONDS * 1_000, waitedMs, modelCalls }
  },

  // The script's second entry is an answer: a call before its time would have ended the run before its time.
  judge: ({ state, toldMs, waitedMs, modelCalls }) => [
    check('the answer came', state === 'succeeded', state),
    check('not before the provider allowed it', waitedMs >= toldMs, `${waitedMs} ms of ${toldMs} ms`),
    check(`with ${CALLS} calls and no more`, modelCalls === CALLS, modelCalls),
  ],
}
