import { readFileSync, statSync } from 'node:fs'

import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'

/*
 * What is wrong with the package as it would be published: `node scripts/check-package.ts holdfast-1.2.3.tgz`. The same limits
 * are tests (test/library/package.test.ts); this is for the file that really goes out.
 */

/** What a person waits for on a slow line, and what a project has to trust. */
const MOST_BYTES = 3 * 1024 * 1024
const MOST_DEPENDENCIES = 10
/** npm runs these on the machine of whoever installs us. */
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare']

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly scripts?: Readonly<Record<string, string>>
}

/** One sentence for each thing that is wrong. */
export async function problemsOf(tarball: string): Promise<string[]> {
  const bytes = readFileSync(tarball)
  const { messages, pkg } = await publint({ pack: { tarball: asArrayBuffer(bytes) }, level: 'suggestion' })
  return [
    ...ofManifest(pkg as Manifest),
    ...(statSync(tarball).size < MOST_BYTES ? [] : [`${bytes.length} bytes are more than ${MOST_BYTES}`]),
    ...messages.map((message) => `publint: ${formatMessage(message, pkg) ?? message.code}`),
    ...(await ofTypes(bytes)),
  ]
}

const asArrayBuffer = ({ buffer, byteOffset, byteLength }: Buffer) =>
  buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer

function ofManifest({ dependencies = {}, scripts = {} }: Manifest): string[] {
  const count = Object.keys(dependencies).length
  return [
    ...(count <= MOST_DEPENDENCIES ? [] : [`${count} dependencies are more than ${MOST_DEPENDENCIES}`]),
    ...INSTALL_SCRIPTS.filter((name) => name in scripts).map((name) => `it has the script "${name}"`),
  ]
}

/** ES modules only, so that CommonJS without `import()` cannot load it is meant; `engines` asks for a Node that has `require(esm)`. */
const MEANT = new Set(['CJSResolvesToESM'])
/** Resolution as before 2022 knows no `exports`. */
const NOT_SERVED = 'node10'

async function ofTypes(bytes: Buffer): Promise<string[]> {
  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)))
  if (analysis.types === false) return ['are the types wrong: it has none']
  return analysis.problems
    .filter((problem) => !MEANT.has(problem.kind))
    .filter((problem) => !('resolutionKind' in problem) || problem.resolutionKind !== NOT_SERVED)
    .map((problem) => `are the types wrong: ${JSON.stringify(problem)}`)
}

if (import.meta.main) {
  const [tarball] = process.argv.slice(2)
  if (tarball === undefined) throw new Error('say which: node scripts/check-package.ts FILE.tgz')
  const problems = await problemsOf(tarball)
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  process.stdout.write(`${tarball}: ${problems.length === 0 ? 'nothing wrong' : `${problems.length} problems`}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
