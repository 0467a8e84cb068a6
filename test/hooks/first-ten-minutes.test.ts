import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { Installation } from '../support/holdfast.ts'
import { blocksIn } from '../tidy/docs.ts'
import { readSource } from '../tidy/tree.ts'
import { openModelServer } from './model-server.ts'
import { ROOT, realClient, run } from './support.ts'

const CLAUDE = realClient('claude')

/** The line of docs/first-ten-minutes.md that starts Claude Code, and what it asks it to run. */
function pageSays(): { readonly prompt: string; readonly command: string } {
  const line = blocksIn(readSource('docs/first-ten-minutes.md'))
    .flatMap(({ text }) => text.split('\n'))
    .find((each) => each.startsWith('claude -p '))
  const [, prompt, command] = /^claude -p "(.*'(.*)'.*)" --allowedTools Bash$/.exec(line ?? '') ?? []
  return { prompt: prompt ?? '', command: command ?? '' }
}

test.skipIf(CLAUDE === undefined)(
  'a Claude Code that was connected as the page says hears how its child ended, within the same prompt [inbox/busy-parent]',
  async () => {
    const { prompt, command } = pageSays()
    expect(command).toContain('--parent self')
    const place = new Installation()
    const userHome = join(place.home, '..', 'user')
    mkdirSync(userHome)
    const seen = join(userHome, 'child-ended')
    // As a test suite would: it ends, and only then does the turn that started it.
    const tests = `sh -c 'echo "all 12 passed"'`
    const model = await openModelServer(({ text }) => {
      if (!text.includes('tool_result'))
        return {
          bash: `${command.replace('npm test', tests)} && until holdfast runs list | grep -q 'succeeded.*all 12'; do sleep 0.1; done; touch ${seen}`,
        }
      return { text: text.includes('Stop hook feedback') ? 'All 12 passed.' : 'I have started them.' }
    })
    onTestFinished(model.close)
    const env = {
      HOME: userHome,
      HOLDFAST_HOME: place.home,
      PATH: `${join(ROOT, 'bin')}:${process.env.PATH ?? ''}`,
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: 'dummy',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }
    expect((await place.run(['hooks', 'install', 'claude', '--yes'], env)).code).toBe(0)
    await place.up()
    const { stdout } = await run(CLAUDE!, ['-p', prompt, '--allowedTools', 'Bash'], { env, cwd: userHome })
    expect(existsSync(seen)).toBe(true)
    expect(stdout.trim()).toBe('All 12 passed.')
    expect((await place.run(['threads', 'list'])).stdout).toMatch(/^tests +command +succeeded/m)
  },
)
