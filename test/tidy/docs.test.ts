import { expect, test } from 'vitest'
import {
  asModules,
  blocksIn,
  brokenJson,
  commandsIn,
  commandsInHelp,
  unknownBlocks,
  unknownCommands,
  unknownScripts,
  type Block,
} from './docs.ts'
import { askCommandLine, compilerErrors, runProgram, runShell } from './docs-run.ts'
import { filesBelow, readSource } from './tree.ts'

const isDocument = (path: string) => /^(README|ARCHITECTURE|CONTRIBUTING)\.md$|^(docs|examples)\/.*\.md$/.test(path)
const documents = filesBelow('').filter(isDocument).map(readSource)
const blocks = documents.flatMap(blocksIn)
const shell = blocks.filter((block) => block.language === 'sh')
const commands = shell.flatMap(commandsIn)
const { scripts } = JSON.parse(readSource('package.json').text) as { scripts: Record<string, string> }

const example = (info: string, ...lines: string[]): Block[] =>
  blocksIn({ path: 'docs/a.md', text: ['# Title', `\`\`\`${info}`, ...lines, '```', ''].join('\n') })

test('every code block says what it is', () => {
  console.log(`docs: ${blocks.length} code blocks in ${documents.length} documents`)
  const fences = documents.flatMap((file) => file.text.match(/^ {0,3}```/gm) ?? [])
  expect(blocks.length).toBe(fences.length / 2)
  expect(blocks.length).toBeGreaterThanOrEqual(1)
  expect(unknownBlocks(blocks)).toEqual([])
})

test('the TypeScript in the docs compiles', () => {
  const modules = asModules(blocks)
  expect(modules.length === 0 ? [] : compilerErrors(modules)).toEqual([])
})

test('the JSON in the docs parses', () => {
  expect(brokenJson(blocks)).toEqual([])
})

// A block is a dozen processes: two at a time, and each with as long as it takes.
test('the shell blocks marked as run do run', { timeout: 300_000 }, async () => {
  const runnable = shell.filter((block) => block.marks.includes('run'))
  const half = Math.ceil(runnable.length / 2)
  const inTurn = async (some: typeof runnable) => {
    const wrong: string[] = []
    for (const block of some) wrong.push(...(await runShell(block)))
    return wrong
  }
  const wrong = await Promise.all([inTurn(runnable.slice(0, half)), inTurn(runnable.slice(half))])
  expect(wrong.flat()).toEqual([])
})

test('the programs marked as run do run', async () => {
  const programs = blocks.filter((block) => block.language === 'ts' && block.marks.includes('run'))
  expect((await Promise.all(programs.map(runProgram))).flat()).toEqual([])
  expect(programs.length).toBeGreaterThanOrEqual(1)
})

test('the docs name only scripts that exist', () => {
  expect(unknownScripts(commands, Object.keys(scripts))).toEqual([])
})

const subcommands = askCommandLine()
test.runIf(subcommands !== undefined)('the docs name only commands that exist', () => {
  expect(subcommands?.([]).length).toBeGreaterThan(0)
  expect(unknownCommands(commands, subcommands ?? (() => []))).toEqual([])
})

test('planted mistakes in code blocks are found, at their line', async () => {
  expect(unknownBlocks(example('', 'x'))).toEqual([expect.stringMatching(/^docs\/a\.md:3: "" is none of/)])
  expect(brokenJson(example('json', '{ "a": 1, }'))).toHaveLength(1)
  const wrong = example('ts', 'const a: number = 1', 'const b: string = a')
  expect(compilerErrors(asModules(wrong))).toEqual([expect.stringMatching(/^docs\+a\.md\.3\.ts\(4,7\): error TS2322/)])
  expect(await runShell(example('sh run', 'false', 'true')[0]!)).toHaveLength(1)
  expect(await runShell(example('sh run', 'test -z "$(ls -A "$HOME")"', 'node --version')[0]!)).toEqual([])
  expect(await runShell(example('sh run', 'sleep 60 &', 'exit 3')[0]!)).toEqual([
    expect.stringMatching(/^docs\/a\.md:3: ended with 3/),
  ])
  expect(await runProgram(example('ts run', "import { nothing } from 'holdfast'", 'nothing()')[0]!)).toHaveLength(1)
  expect(() => blocksIn({ path: 'a.md', text: '```sh\nls\n' })).toThrow('never closed')
})

test('commands are found in lists, pipes and behind variables, and looked up word by word', () => {
  const found = example(
    'sh',
    '$ A=1 holdfast runs list --json | jq . # the runs',
    'npm ci && npm run nonsense; holdfast fly --high',
    'holdfast runs \\',
    '  juggle "$(cat x)"',
    'echo "holdfast nothing" && ./bin/holdfast run -- holdfast',
  ).flatMap(commandsIn)
  const known: Record<string, string[]> = { '': ['run', 'runs'], runs: ['list'] }
  expect(unknownCommands(found, (words) => known[words.join(' ')] ?? [])).toEqual([
    'docs/a.md:4: holdfast has no command "fly"',
    'docs/a.md:5: holdfast has no command "runs juggle"',
  ])
  expect(unknownScripts(found, ['test'])).toEqual(['docs/a.md:4: there is no script "nonsense"'])
})

test('the commands are read from the help', () => {
  const help =
    'Usage: holdfast\n\nOptions:\n  -h\n\nCommands:\n  up [options]   runs\n  inbox|box      lists\n                 more\n'
  expect(commandsInHelp(help)).toEqual(['up', 'inbox', 'box'])
})
