import { expect, test } from 'vitest'
import { asScripts, blocksIn, type Block } from './docs.ts'
import { runProgram, runShell } from './docs-run.ts'
import { documents } from './tree.ts'

const marked = (language: string) =>
  documents().flatMap((document) =>
    asScripts(blocksIn(document).filter((block) => block.language === language && block.marks.includes('run'))),
  )

const planted = (info: string, ...lines: string[]): Block =>
  blocksIn({ path: 'docs/a.md', text: ['# Title', `\`\`\`${info}`, ...lines, '```', ''].join('\n') })[0]!

// A block is a dozen processes: three at a time, and each with as long as it takes.
test('the shell blocks marked as run do run', { timeout: 300_000 }, async () => {
  const waiting = marked('sh')
  expect(waiting.length).toBeGreaterThanOrEqual(1)
  const inTurn = async () => {
    const wrong: string[] = []
    for (let block = waiting.shift(); block !== undefined; block = waiting.shift())
      wrong.push(...(await runShell(block)))
    return wrong
  }
  expect((await Promise.all([inTurn(), inTurn(), inTurn()])).flat()).toEqual([])
})

test('the programs marked as run do run', async () => {
  const programs = marked('ts')
  expect((await Promise.all(programs.map(runProgram))).flat()).toEqual([])
  expect(programs.length).toBeGreaterThanOrEqual(1)
})

test('a block that fails is found, at its line, and what it started ends with it', async () => {
  expect(await runShell(planted('sh run', 'false', 'true'))).toHaveLength(1)
  expect(await runShell(planted('sh run', 'test -z "$(ls -A "$HOME")"', 'node --version'))).toEqual([])
  expect(await runShell(planted('sh run', 'sleep 60 &', 'exit 3'))).toEqual([
    expect.stringMatching(/^docs\/a\.md:3: ended with 3/),
  ])
  expect(await runProgram(planted('ts run', "import { nothing } from 'holdfast'", 'nothing()'))).toHaveLength(1)
})
