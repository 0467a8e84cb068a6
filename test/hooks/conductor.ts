import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { eventOf, wantedHandlers } from '../../src/hooks/install/entries.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { Installation, until } from '../support/holdfast.ts'
import { openModelServer } from './model-server.ts'
import type { Asked, ModelServer, Script } from './model-server.ts'
import { HOOK, NODE, makeStage, realClient, run } from './support.ts'
import type { Stage } from './support.ts'

/** A real Claude Code with our hooks, and the model that it talks to. */
export interface Conductor {
  readonly installation: Installation
  readonly stage: Stage
  readonly store: Store
  readonly model: ModelServer
  /** One `claude -p`: its session, once it has ended. */
  readonly ask: (prompt: string, ...flags: string[]) => Promise<string>
  /** What it prints as JSON. */
  readonly print: (...args: string[]) => Promise<Printed>
}

export interface Printed {
  readonly session_id?: string
  readonly stop_reason?: string
  readonly result?: string
}

export interface ConductorOptions {
  readonly stopHook?: string
  readonly permissions?: boolean
}

export async function makeConductor(script: Script, options: ConductorOptions = {}): Promise<Conductor> {
  const installation = new Installation()
  const model = await openModelServer(script)
  onTestFinished(model.close)
  const stage = makeStage(settingsFor(installation.home, options), {
    HOLDFAST_HOME: installation.home,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'dummy',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  })
  await installation.run(['status'])
  const store = await openSqliteStore({ path: join(installation.home, 'holdfast.db') })
  onTestFinished(() => store.close())
  const claude = realClient('claude') ?? 'claude'
  const print = async (...args: string[]) => {
    const all = ['-p', ...args, '--output-format', 'json', '--allowedTools', 'Bash']
    const { stdout } = await run(claude, all, { env: stage.env, cwd: stage.folder })
    return stdout === '' ? {} : (JSON.parse(stdout) as Printed)
  }
  const ask = async (prompt: string, ...flags: string[]) => (await print(prompt, ...flags)).session_id ?? ''
  return { installation, stage, store, model, ask, print }
}

function settingsFor(home: string, { stopHook, permissions = false }: ConductorOptions): object {
  const ours = { client: 'claude', node: NODE, home, store: undefined, daemon: undefined } as const
  const hooks: Record<string, object[]> = {}
  for (const [slot, handler] of wantedHandlers({ ...ours, script: HOOK, startDaemon: false, permissions })) {
    const entry = slot === 'Stop' && stopHook !== undefined ? { ...handler, args: [stopHook, HOOK, 'claude'] } : handler
    ;(hooks[eventOf(slot)] ??= []).push({ hooks: [entry] })
  }
  return { hooks, permissions: { allow: ['Bash'] } }
}

/**
 * Each text that a Stop hook put in front of the model. The client quotes it once more by itself, as the error of a hook
 * that blocked; that is not counted.
 */
export const injected = ({ body }: Asked): string[] =>
  (body.messages ?? [])
    .flatMap(({ content }) => (typeof content === 'string' ? [{ text: content }] : (content as { text?: string }[])))
    .flatMap(({ text }) => (text?.startsWith('Stop hook feedback') === true ? [text] : []))

export const timesIn = (texts: readonly string[], word: string) => texts.join('\n').split(word).length - 1

/** The same client as somebody has it in front of them, in a terminal. */
export interface Terminal {
  readonly screen: () => Promise<string>
  readonly shows: (text: string) => Promise<string>
  readonly type: (text: string) => Promise<void>
  readonly press: (key: string) => Promise<void>
}

export async function openTerminal({ stage }: Conductor): Promise<Terminal> {
  const known = { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true }
  const state = {
    hasCompletedOnboarding: true,
    theme: 'dark',
    customApiKeyResponses: { approved: ['dummy'], rejected: [] },
    projects: { [stage.folder]: known },
  }
  writeFileSync(join(stage.userHome, '.claude.json'), JSON.stringify(state))
  const place = join(stage.userHome, 'terminal')
  mkdirSync(place)
  const socket = join(place, 'socket')
  const env = { ...stage.env, TERM: 'xterm-256color', LANG: 'C.UTF-8' }
  const tmux = (...args: string[]) =>
    run('tmux', ['-S', socket, '-f', '/dev/null', ...args], { env, cwd: stage.folder })
  // Without the terminal's name: by that a daemon would type into it, and here the client is to wake itself.
  await tmux(
    'new-session',
    '-d',
    '-x',
    '120',
    '-y',
    '50',
    `env -u TMUX -u TMUX_PANE ${realClient('claude') ?? 'claude'}`,
  )
  onTestFinished(async () => void (await tmux('kill-server')))
  const screen = async () => (await tmux('capture-pane', '-p')).stdout
  const shows = (text: string) =>
    until(`the terminal shows ${text}`, async () => {
      const seen = await screen()
      return seen.includes(text) ? seen : undefined
    })
  const type = async (text: string) => {
    await tmux('send-keys', '-l', text)
    await shows(text)
    await tmux('send-keys', 'Enter')
  }
  return { screen, shows, type, press: async (key) => void (await tmux('send-keys', key)) }
}

export const hasTmux = (): boolean =>
  ['/usr/bin/tmux', '/usr/local/bin/tmux', '/opt/homebrew/bin/tmux'].some((path) => {
    try {
      return readFileSync(path).length > 0
    } catch {
      return false
    }
  })
