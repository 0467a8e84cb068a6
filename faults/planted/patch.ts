import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'patches')

/** A bug that is planted: what it breaks, and who has to notice. */
export interface Planted {
  /** Of its file, such as `07-second-terminal-state`. */
  readonly name: string
  readonly path: string
  readonly text: string
  readonly breaks: string
  readonly promise: string
  readonly tests: readonly string[]
}

/** All of them, in the order of their numbers: the seed is the place, from 1. */
export function plantedBugs(): readonly Planted[] {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.patch'))
  const inOrder = names.toSorted((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10))
  return inOrder.map((name) => readPlanted(join(FOLDER, name), name.slice(0, -'.patch'.length)))
}

/** The head is three lines before the diff, which `git apply` passes over. */
function readPlanted(path: string, name: string): Planted {
  const text = readFileSync(path, 'utf8')
  const line = (label: string) => new RegExp(`^${label}: (.+)$`, 'm').exec(text.slice(0, text.indexOf('\ndiff ')))?.[1]
  const [breaks = '', promise = '', tests = ''] = ['Breaks', 'Promise', 'Caught by'].map(line)
  return { name, path, text, breaks, promise, tests: tests.split(' ').filter(Boolean) }
}

interface Hunk {
  readonly file: string
  /** What is there before it is applied: with little context around it, that has to be in one place only. */
  readonly before: string
}

export function hunksOf({ text }: Planted): readonly Hunk[] {
  return text.split(/^diff --git /m).flatMap((part, index) => {
    const file = /^\+\+\+ b\/(.+)$/m.exec(part)?.[1]
    if (index === 0 || file === undefined) return []
    const bodies = part.split(/^@@ .*\n/m).slice(1)
    return bodies.map((body) => ({ file, before: linesBefore(body) }))
  })
}

const linesBefore = (body: string) =>
  body
    .split('\n')
    .filter((line) => line.startsWith(' ') || line.startsWith('-'))
    .map((line) => line.slice(1))
    .join('\n')

/** The project of vitest.config.ts that has the file. */
export function projectOf(file: string): string {
  return file.startsWith('src/') ? 'unit' : (file.split('/')[1] ?? '')
}
