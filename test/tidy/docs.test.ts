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
import { askCommandLine, compilerErrors } from './docs-run.ts'
import { documents as readDocuments, readSource } from './tree.ts'

const documents = readDocuments()
const blocks = documents.flatMap(blocksIn)
const commands = blocks.filter((block) => block.language === 'sh').flatMap(commandsIn)
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

test('the TypeScript in the docs compiles, and a planted mistake is found, at its line', () => {
  const wrong = example('ts', 'const a: number = 1', 'const b: string = a')
  const modules = asModules([...blocks, ...wrong])
  expect(modules.length).toBeGreaterThan(1)
  expect(compilerErrors(modules)).toEqual([expect.stringMatching(/^docs\+a\.md\.3\.ts\(4,7\): error TS2322/)])
})

test('the JSON in the docs parses', () => {
  expect(brokenJson(blocks)).toEqual([])
})

test('the docs name only scripts that exist', () => {
  expect(unknownScripts(commands, Object.keys(scripts))).toEqual([])
})

test('the docs name only commands that exist', () => {
  const subcommands = askCommandLine()
  expect(subcommands(['runs'])).toContain('events')
  expect(unknownCommands(commands, subcommands)).toEqual([])
})

test('planted mistakes in code blocks are found, at their line', () => {
  expect(unknownBlocks(example('', 'x'))).toEqual([expect.stringMatching(/^docs\/a\.md:3: "" is none of/)])
  expect(brokenJson(example('json', '{ "a": 1, }'))).toHaveLength(1)
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
