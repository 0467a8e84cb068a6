import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { projectOf } from './patch.ts'

/** What became of some test files. */
export type Tested =
  | { readonly kind: 'green' }
  /** These tests failed. */
  | { readonly kind: 'red'; readonly failed: readonly string[] }
  /** Nothing is known: no test failed, and they did not all pass. */
  | { readonly kind: 'broken'; readonly why: string }

/** Longer than any of them takes on a busy machine, waiting for its own time to be over included. */
const MOST_MS = 400_000
const LAST_WORDS = 600

interface Report {
  readonly success: boolean
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

export type Variables = Readonly<Record<string, string>>

/** Runs test files of a tree as `npm test` does, up to the first that fails. */
export async function runTests(root: string, files: readonly string[], variables: Variables = {}): Promise<Tested> {
  const out = join(root, 'planted-report.json')
  rmSync(out, { force: true })
  const projects = [...new Set(files.map(projectOf))].flatMap((project) => ['--project', project])
  const args = ['run', '--bail', '1', ...projects, '--reporter', 'json', '--outputFile', out, ...files]
  const said = await vitest(root, args, variables)
  return verdict(out, said, files)
}

function vitest(root: string, args: readonly string[], variables: Variables): Promise<string> {
  return new Promise((resolve, reject) => {
    const program = join(root, 'node_modules/vitest/vitest.mjs')
    const child = spawn(process.execPath, [program, ...args], { cwd: root, env: { ...ownVariables(), ...variables } })
    let said = ''
    const hear = (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-LAST_WORDS))
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    const timer = setTimeout(() => child.kill('SIGKILL'), MOST_MS)
    child.once('error', reject)
    child.once('close', () => {
      clearTimeout(timer)
      resolve(said)
    })
  })
}

/** Without what a vitest around this one has said to its own. */
function ownVariables(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|TEST$|NODE_ENV$|NODE_COMPILE_CACHE$)/.test(name),
  )
  return { ...Object.fromEntries(inherited), NO_COLOR: '1' }
}

function verdict(out: string, said: string, files: readonly string[]): Tested {
  const report = readReport(out)
  if (report === undefined) return { kind: 'broken', why: `there is no report: ${said}` }
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults)
  const failed = tests.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName)
  if (failed.length > 0) return { kind: 'red', failed }
  const seen = new Set(report.testResults.map(({ name }) => name))
  const missing = files.filter((file) => ![...seen].some((name) => name.endsWith(`/${file}`)))
  if (missing.length > 0) return { kind: 'broken', why: `nobody ran ${missing.join(', ')}: ${said}` }
  // Not a bug that a test notices, but sources that cannot be loaded.
  return report.success ? { kind: 'green' } : { kind: 'broken', why: said }
}

function readReport(out: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(out, 'utf8')) as Report
  } catch {
    return undefined
  }
}
