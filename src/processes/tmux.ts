import type { Clock } from '../base/clock.ts'
import { sleep } from '../base/clock.ts'
import { runBriefly } from './brief-command.ts'
import { promptLineOf } from './prompt-line.ts'
import type { PromptLine } from './prompt-line.ts'

export interface Pane {
  readonly socket: string
  readonly pane: string
}

export interface Typing {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly env: Readonly<Record<string, string>>
  /** Asked when the prompt is seen to be empty, right before anything is typed. */
  readonly mayType: () => Promise<boolean>
}

/**
 * `typed`: the line was typed and sent. `occupied`: the pane does not show an empty prompt, so nothing was typed. `refused`:
 * by `mayType`. `unsent`: somebody began to type in the same moment; the line is left to that person, unsent.
 */
export type Typed = 'typed' | 'occupied' | 'refused' | 'unsent' | 'gone'

/** Looks again so often whether the client has drawn what was typed. */
const LOOK_MS = 50

/** Types a line at a pane's empty prompt and sends it. Never over what a person is typing. */
export async function typeAtPrompt(pane: Pane, line: string, typing: Typing): Promise<Typed> {
  const deadline = typing.clock.monotonicMs() + typing.timeoutMs
  const tmux = (...args: readonly string[]) =>
    // Without -u it shows what is not ASCII as `_` wherever the locale is not UTF-8, the prompt's own sign too.
    runBriefly(['tmux', '-u', '-S', pane.socket, ...args], {
      ...typing,
      timeoutMs: deadline - typing.clock.monotonicMs(),
    })
  const look = async (): Promise<PromptLine | 'gone' | undefined> => {
    // In a mode of tmux's own (scrolling back) keys would steer that.
    const mode = await tmux('display-message', '-p', '-t', pane.pane, '#{pane_in_mode}#{pane_dead}')
    if (mode.code !== 0) return 'gone'
    if (mode.stdout.trim() !== '00' && mode.stdout.trim() !== '0') return undefined
    const screen = await tmux('capture-pane', '-e', '-p', '-t', pane.pane)
    return screen.code === 0 ? promptLineOf(screen.stdout) : 'gone'
  }
  const before = await look()
  if (before === 'gone') return 'gone'
  if (before?.kind !== 'empty') return 'occupied'
  if (!(await typing.mayType())) return 'refused'
  await tmux('send-keys', '-t', pane.pane, '-l', '--', line)
  while (typing.clock.monotonicMs() < deadline) {
    const now = await look()
    if (now !== undefined && now !== 'gone' && now.kind === 'typed') {
      // Only the beginning of it may be drawn yet.
      if (now.text === line) return (await tmux('send-keys', '-t', pane.pane, 'Enter')).code === 0 ? 'typed' : 'gone'
      if (!line.startsWith(now.text)) return 'unsent'
    }
    await sleep(typing.clock, LOOK_MS)
  }
  return 'unsent'
}
