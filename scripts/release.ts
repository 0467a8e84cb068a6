/**
 * Makes a release, or says why not. It publishes nothing: it leaves a commit, a tag and the package, and the last command is a person's.
 *
 *   node scripts/release.ts 0.2.0 --dry-run    # every check, and no change
 *   node scripts/release.ts 0.2.0
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

const UNRELEASED = '## Unreleased\n'

interface Release {
  readonly version: string
  readonly dryRun: boolean
  /** What says whether everything works. */
  readonly suite: string
}

const say = (text: string) => void process.stdout.write(`release: ${text}\n`)

/** In the order of what they cost: the suite takes minutes. */
function reasonsAgainst({ version }: Release): string[] {
  const current = manifest().version
  return [
    ...(/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version) ? [] : [`"${version}" is no version: write it as 1.2.3`]),
    ...(git('tag', '--list', tagOf(version)) === ''
      ? []
      : [`${tagOf(version)} is there already: choose another version`]),
    ...(isBefore(version, current) ? [`${version} comes before ${current}, which is in package.json`] : []),
    ...(git('status', '--porcelain') === ''
      ? []
      : ['there is something that is not committed: commit it or put it away']),
    ...(unreleased() === '' ? ['"Unreleased" in CHANGELOG.md is empty: write down what changed'] : []),
  ]
}

const manifest = () => JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string }
const git = (...args: readonly string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
const tagOf = (version: string) => `v${version}`

function isBefore(version: string, current: string): boolean {
  const [a, b] = [version, current].map((text) => text.split(/[.-]/).slice(0, 3).map(Number))
  const differs = [0, 1, 2].find((place) => a?.[place] !== b?.[place])
  return differs !== undefined && (a?.[differs] ?? 0) < (b?.[differs] ?? 0)
}

/** What stands between the heading and the next one. */
function unreleased(): string {
  const text = readFileSync('CHANGELOG.md', 'utf8')
  const from = text.indexOf(UNRELEASED)
  if (from === -1) return ''
  return (text.slice(from + UNRELEASED.length).split(/^## /m)[0] ?? '').trim()
}

function isRed({ suite }: Release): boolean {
  say(suite)
  return spawnSync('sh', ['-c', suite], { stdio: 'inherit' }).status !== 0
}

/** The changelog gets its heading, the manifests their version, the commit its tag. */
function writeDown({ version }: Release): void {
  const day = new Date().toISOString().slice(0, 10)
  const changelog = readFileSync('CHANGELOG.md', 'utf8')
  writeFileSync('CHANGELOG.md', changelog.replace(UNRELEASED, `${UNRELEASED}\n## ${version} (${day})\n`))
  execFileSync('npm', ['version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts'])
  git('commit', '--quiet', '--all', '--message', `Release ${version}`)
  git('tag', '--annotate', tagOf(version), '--message', unreleasedIn(changelog))
}

const unreleasedIn = (changelog: string) =>
  (changelog.split(UNRELEASED)[1]?.split(/^## /m)[0] ?? '').trim().replaceAll(/^#/gm, ' #')

function pack(): string {
  const listed = execFileSync('npm', ['pack', '--json', '--silent'], { encoding: 'utf8' })
  const packed = JSON.parse(listed.slice(listed.search(/^[[{]/m))) as Record<string, { readonly filename: string }>
  return Object.values(packed)[0]?.filename ?? ''
}

/** What is packed for this has the version before, so it is not the one to publish: it goes, whatever is found. */
async function problemsOfPackage(): Promise<string[]> {
  // Loaded when it is needed: it brings a compiler along.
  const { problemsOf } = await import('./check-package.ts')
  const tarball = pack()
  try {
    return await problemsOf(tarball)
  } finally {
    rmSync(tarball)
  }
}

async function release(asked: Release): Promise<number> {
  const against = reasonsAgainst(asked)
  if (against.length > 0) return refuse(against)
  if (isRed(asked)) return refuse([`\`${asked.suite}\` failed: mend that first`])
  if (git('status', '--porcelain') !== '') return refuse([`\`${asked.suite}\` left files behind: look at git status`])
  if (asked.dryRun) {
    say(`${asked.version} could be made; nothing was changed`)
    return 0
  }
  const problems = await problemsOfPackage()
  if (problems.length > 0) return refuse(problems)
  writeDown(asked)
  // Packed again: the version is part of it.
  const file = pack()
  say(`${file} is made, committed and tagged. What is left:`)
  say(`  git push origin HEAD ${tagOf(asked.version)}`)
  say(`  npm publish ${file}`)
  return 0
}

function refuse(reasons: readonly string[]): number {
  for (const reason of reasons) process.stderr.write(`release: refused: ${reason}\n`)
  return 1
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'dry-run': { type: 'boolean', default: false }, suite: { type: 'string', default: 'npm test' } },
})
process.exitCode = await release({
  version: positionals[0] ?? '',
  dryRun: values['dry-run'],
  suite: values.suite,
})
