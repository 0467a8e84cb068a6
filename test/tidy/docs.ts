import type { SourceFile } from './tree.ts'

/** A fenced block of a document: ```` ```sh run ```` has the language `sh` and the mark `run`. */
export interface Block {
  readonly file: string
  /** The line of its first line of content, from 1. */
  readonly line: number
  readonly language: string
  readonly marks: readonly string[]
  readonly text: string
}

/**
 * What a block may be, and so how it is checked: `ts` is type-checked, `ts run` executed too, `json` parsed, `sh run`
 * executed (`sh run then` as the rest of the one before), the commands of any other `sh` looked up. `text` and `mermaid` are for people: output, diagrams.
 */
export const LANGUAGES = ['ts', 'json', 'sh', 'text', 'mermaid']

export function blocksIn(file: SourceFile): Block[] {
  const blocks: Block[] = []
  let open: { fence: string; line: number; info: string; text: string[] } | undefined
  for (const [index, line] of file.text.split('\n').entries()) {
    const fence = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line)
    if (open === undefined) {
      if (fence !== null) open = { fence: fence[1]!, line: index + 2, info: fence[2]!.trim(), text: [] }
    } else if (fence?.[2]?.trim() === '' && fence[1]!.startsWith(open.fence)) {
      const [language = '', ...marks] = open.info.split(/\s+/)
      blocks.push({ file: file.path, line: open.line, language, marks, text: `${open.text.join('\n')}\n` })
      open = undefined
    } else open.text.push(line)
  }
  if (open !== undefined) throw new Error(`${file.path}:${open.line - 1}: this code block is never closed`)
  return blocks
}

/** `run then` goes on where the block before it ended: the same shell, the same home. */
export function asScripts(blocks: readonly Block[]): Block[] {
  const scripts: Block[] = []
  for (const block of blocks) {
    const before = block.marks.includes('then') ? scripts.pop() : undefined
    scripts.push(before === undefined ? block : { ...before, text: `${before.text}${block.text}` })
  }
  return scripts
}

export const placeOf = (block: Block) => `${block.file}:${block.line}`

export const unknownBlocks = (blocks: readonly Block[]): string[] =>
  blocks
    .filter((block) => !LANGUAGES.includes(block.language))
    .map((block) => `${placeOf(block)}: "${block.language}" is none of ${LANGUAGES.join(', ')}`)

export function brokenJson(blocks: readonly Block[]): string[] {
  return blocks
    .filter((block) => block.language === 'json')
    .flatMap((block) => {
      try {
        JSON.parse(block.text)
        return []
      } catch (error) {
        return [`${placeOf(block)}: ${(error as Error).message}`]
      }
    })
}

/** A module for each block, its lines where they are in the document, so that the compiler names the right line. */
export const asModules = (blocks: readonly Block[]): SourceFile[] =>
  blocks
    .filter((block) => block.language === 'ts')
    .map((block) => ({
      path: `${block.file.replaceAll('/', '+')}.${block.line}.ts`,
      text: `${'\n'.repeat(block.line - 1)}${block.text}export {}\n`,
    }))

export interface Command {
  readonly place: string
  /** The words of the command, from its name on: `['holdfast', 'runs', 'list', '--json']`. */
  readonly words: readonly string[]
}

/** The commands in a shell block, one for each part of a pipe or list; comments, prompts and variables taken off. */
export function commandsIn(block: Block): Command[] {
  const joined = block.text.replaceAll(/\\\n/g, '  ')
  return joined.split('\n').flatMap((line, index) =>
    line
      .replace(/^\s*\$ /, '')
      .replace(/(^|\s)#.*$/, '')
      .replaceAll(/'[^']*'|"[^"]*"/g, 'QUOTED')
      .split(/&&|\|\|?|;|&(?=\s|$)|\$\(|\)/)
      .map((part) => part.trim().replace(/^(\w+=\S*\s+)+/, ''))
      .filter((part) => part !== '')
      .map((part) => ({ place: `${block.file}:${block.line + index}`, words: part.split(/\s+/) })),
  )
}

/** The subcommands that a command has, from its `--help`; none for a leaf. */
export type Subcommands = (words: readonly string[]) => readonly string[]

/** Commands of ours that the command line does not know. */
export function unknownCommands(commands: readonly Command[], subcommands: Subcommands): string[] {
  return commands
    .filter(({ words }) => /^(\.\/bin\/)?holdfast$/.test(words[0] ?? ''))
    .flatMap(({ place, words }) => {
      const wrong = firstUnknown(words.slice(1), subcommands)
      return wrong === undefined ? [] : [`${place}: holdfast has no command "${wrong}"`]
    })
}

function firstUnknown(words: readonly string[], subcommands: Subcommands): string | undefined {
  for (let depth = 0; depth < words.length; depth++) {
    const known = subcommands(words.slice(0, depth))
    const word = words[depth]!
    if (known.length === 0 || word.startsWith('-')) return undefined
    if (!known.includes(word)) return words.slice(0, depth + 1).join(' ')
  }
  return undefined
}

/** `npm run` of scripts that are not there. */
export function unknownScripts(commands: readonly Command[], scripts: readonly string[]): string[] {
  return commands.flatMap(({ place, words: [program, verb, name] }) => {
    if (program !== 'npm') return []
    const script = verb === 'run' ? name : verb === 'start' || verb === 'test' ? verb : undefined
    return script === undefined || scripts.includes(script) ? [] : [`${place}: there is no script "${script}"`]
  })
}

/** The names under "Commands:" in the output of `--help`. */
export function commandsInHelp(help: string): string[] {
  const section = /^Commands:\n((?: {2}.*\n?|\n)*)/m.exec(help)?.[1] ?? ''
  return Array.from(section.matchAll(/^ {2}([a-z][\w-]*)((?:\|[\w-]+)*)/gm), (match) => [
    match[1]!,
    ...match[2]!.split('|'),
  ])
    .flat()
    .filter(Boolean)
}
