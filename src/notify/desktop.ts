import type { Clock } from '../base/clock.ts'
import { LIMITS } from '../base/limits.ts'
import { runBriefly } from '../processes/brief-command.ts'
import { inWords } from './channel.ts'
import type { Channel } from './channel.ts'

/** The desktop of who runs the daemon, by `notify-send`. */
export function desktopChannel(clock: Clock, env: Readonly<Record<string, string>>): Channel {
  return {
    name: 'desktop',
    async send(message) {
      const { title, text } = inWords(message)
      const argv = ['notify-send', '--app-name=Holdfast', '--', title, withoutMarkup(text)] as const
      const { code } = await runBriefly(argv, { clock, timeoutMs: LIMITS.noticeMs, env })
      if (code === null) throw new Error('notify-send is not there, or did not end')
      if (code !== 0) throw new Error(`notify-send failed (${code})`)
    },
  }
}

/** Desktops read markup in the text below the title. */
const withoutMarkup = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
