import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { listRuns } from '../../src/runs/run.ts'
import type { RunId } from '../../src/base/ids.ts'
import { makeConductor } from '../hooks/conductor.ts'
import { startGeminiServer } from '../hooks/gemini-server.ts'
import { openModelServer } from '../hooks/model-server.ts'
import type { Asked, Reply } from '../hooks/model-server.ts'
import { startResponsesServer } from '../hooks/responses-server.ts'
import { makeStage, realClient } from '../hooks/support.ts'
import type { Stage } from '../hooks/support.ts'
import { until } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { openPlace } from './place.ts'

const [CLAUDE, CODEX, GEMINI] = [realClient('claude'), realClient('codex'), realClient('gemini')]

/** The model behind a client: what was asked, as text. To HANG it never answers, once. */
interface Model {
  readonly asked: () => readonly string[]
}

interface Setup {
  readonly model: Model
  readonly config: object
  readonly env: Readonly<Record<string, string>>
  /** Where the client keeps its sessions. */
  readonly sessions: string
}

const forever = () => new Promise<never>(() => {})

/** Says how often it was asked; a request with the word HANG, and none since, is left without an answer. */
function answers() {
  let asked = 0
  let hung = false
  return async (text: string): Promise<string> => {
    asked += 1
    if (text.includes('HANG') && !hung) {
      hung = true
      return forever()
    }
    return `answer ${asked}`
  }
}

async function claude(): Promise<Setup> {
  const answer = answers()
  const model = await openModelServer(async ({ text }) => ({ text: await answer(text) }))
  onTestFinished(model.close)
  const stage = makeStage({}, {})
  const env = {
    ...stage.env,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'dummy',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }
  const more = ['CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC', 'DISABLE_AUTOUPDATER']
  const coder = { client: 'claude', program: CLAUDE, folder: stage.folder, model: 'claude-sonnet-5', env: more }
  return {
    model: { asked: () => model.asked.map(({ text }) => text) },
    config: { agents: { coder } },
    env,
    sessions: join(stage.userHome, '.claude', 'projects'),
  }
}

async function codex(): Promise<Setup> {
  const answer = answers()
  const model = await startResponsesServer(({ texts }) => answer(texts.join('\n')))
  const stage = makeStage({}, { SCRIPTED_KEY: 'dummy' })
  mkdirSync(join(stage.userHome, '.codex'))
  const provider = `name = "scripted"\nbase_url = "${model.url}"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"`
  writeFileSync(
    join(stage.userHome, '.codex', 'config.toml'),
    `model_provider = "scripted"\n[model_providers.scripted]\n${provider}\nrequest_max_retries = 0\nstream_max_retries = 0\n`,
  )
  const settings = { model: 'scripted', permissions: 'all', env: ['SCRIPTED_KEY'] }
  const coder = { client: 'codex', program: CODEX, folder: stage.folder, ...settings }
  return {
    model: { asked: () => model.asked.map(({ texts }) => texts.join('\n')) },
    config: { agents: { coder }, prices: { 'openai/scripted': { input: 100, output: 200 } } },
    env: stage.env,
    sessions: join(stage.userHome, '.codex', 'sessions'),
  }
}

async function gemini(): Promise<Setup> {
  const answer = answers()
  const model = await startGeminiServer(answer)
  const stage = makeStage({}, { GEMINI_API_KEY: 'dummy', GOOGLE_GEMINI_BASE_URL: model.url })
  mkdirSync(join(stage.userHome, '.gemini'))
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    general: { disableAutoUpdate: true, disableUpdateNag: true },
  }
  writeFileSync(join(stage.userHome, '.gemini', 'settings.json'), JSON.stringify(settings))
  const coder = { client: 'gemini', program: GEMINI, folder: stage.folder, model: 'gemini-2.5-flash' }
  return {
    model: { asked: () => model.asked },
    config: { agents: { coder }, prices: { 'google/gemini-2.5-flash': { input: 100, output: 200 } } },
    env: stage.env,
    sessions: join(stage.userHome, '.gemini', 'tmp'),
  }
}

/** Its processes, by what we put into their environment; all of them at once, as a power cut would. */
function killClient(runId: RunId): number {
  const pids = readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && environmentOf(name).includes(`HOLDFAST_RUN=${runId}`),
  )
  for (const pid of pids) kill(Number(pid))
  return pids.length
}

/** The end of one may have taken another with it. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    return ''
  }
}

const CASES = [
  // The price of the model is its own; 100 tokens of input, 20 of output for each answer of the scripted model.
  { name: 'Claude Code', program: CLAUDE, setup: claude, tokens: [100, 20], costUsd: 0.0004 },
  { name: 'Codex', program: CODEX, setup: codex, tokens: [10, 5], costUsd: 0.002 },
  { name: 'Gemini CLI', program: GEMINI, setup: gemini, tokens: [5, 3], costUsd: 0.0011 },
] as const

for (const { name, program, setup, tokens, costUsd } of CASES) {
  test.skipIf(program === undefined || process.platform !== 'linux')(
    `a real ${name}: one thread is one session, through a kill -9, until it is gone; each turn has its tokens and its cost`,
    async () => {
      const { model, config, env, sessions } = await setup()
      const { ask, send, ended, store } = await openPlace(config, env)
      const first = await ask('--FIRST words')
      const second = await ask('SECOND words', first.thread)
      expect([first, second].map(({ state, error, result }) => [state, error, result?.text])).toEqual([
        ['succeeded', undefined, 'answer 1'],
        ['succeeded', undefined, 'answer 2'],
      ])
      expect(model.asked().at(-1)).toContain('--FIRST words')
      expect(second.result?.session?.id).toBe(first.result?.session?.id)
      const usage = { inputTokens: tokens[0], outputTokens: tokens[1], costUsd }
      expect([first.usage, second.usage]).toEqual([usage, usage])

      const hanging = await send('HANG on', first.thread)
      await until('it asks its model', async () =>
        model.asked().some((text) => text.includes('HANG')) ? true : undefined,
      )
      expect(killClient(hanging.runId)).toBeGreaterThan(0)
      expect(await ended(hanging)).toMatchObject({ state: 'failed', code: 'killed' })
      const third = await ask('THIRD words', first.thread)
      expect(third).toMatchObject({ state: 'succeeded', result: { session: { id: first.result?.session?.id } } })
      expect(model.asked().at(-1)).toContain('HANG on')
      expect(third.usage).toEqual(usage)

      rmSync(sessions, { recursive: true })
      const fourth = await ask('FOURTH words', first.thread)
      expect(fourth).toMatchObject({ state: 'succeeded', usage })
      expect(fourth.result?.text).toContain(`The session ${first.result?.session?.id} is gone`)
      expect(model.asked().at(-1)).toContain('> --FIRST words')
      const fifth = await ask('FIFTH words', first.thread)
      expect(fifth.result?.session?.id).toBe(fourth.result?.session?.id)
      expect(model.asked().at(-1)).toContain('FOURTH words')
      await assertInvariants(store)
    },
  )
}

test.skipIf(CLAUDE === undefined)(
  'a real Claude Code that also has our hooks is counted once, and its tool calls are recorded once',
  async () => {
    const script = ({ text }: Asked): Reply =>
      text.includes('tool_result') ? { text: 'looked' } : { bash: 'echo from-the-tool' }
    const { installation, stage } = await makeConductor(script)
    const { config, env } = hooked(stage)
    const { ask, store } = await openPlace(config, env, installation)
    const run = await ask('look')
    expect(run).toMatchObject({ state: 'succeeded', result: { text: 'looked' }, usage: { inputTokens: 200 } })
    expect(run).toMatchObject({ actions: [{ tool: 'Bash', state: 'done', result: 'from-the-tool' }] })
    const seen = (await store.read(listRuns, { limit: 10 })).filter(({ agent }) => agent === 'claude')
    expect(seen).toMatchObject([{ state: 'succeeded', inputTokens: 0, outputTokens: 0 }])
    await assertInvariants(store)
  },
)

function hooked({ env, folder }: Stage) {
  const more = ['HOLDFAST_HOME', 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC', 'DISABLE_AUTOUPDATER']
  return { config: { agents: { coder: { client: 'claude', program: CLAUDE, folder, env: more } } }, env }
}
