import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { Installation } from '../support/holdfast.ts'
import { ROOT } from '../tidy/tree.ts'

const installed = (shell: string) =>
  ['/usr/bin', '/bin', '/usr/local/bin'].some((place) => existsSync(join(place, shell)))

function inShell(shell: string, args: readonly string[], home = temporaryFolder()) {
  const env = { PATH: `${join(ROOT, 'bin')}:${process.env.PATH ?? ''}`, HOME: home, HOLDFAST_HOME: home, TERM: 'dumb' }
  return spawnSync(shell, args, { env, cwd: ROOT, encoding: 'utf8', timeout: 50_000 })
}

/** What bash would offer at the end of each of these lines, by its own function. '' is a word that is yet to be begun. */
function inBash(lines: readonly string[], home?: string): string[][] {
  const program = `
    eval "$(holdfast completion bash)"
    complete -p holdfast >/dev/null || exit 9
    for line; do
      eval "COMP_WORDS=(holdfast $line)"; COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
      _holdfast
      echo "\${COMPREPLY[*]}"
    done`
  const { status, stdout, stderr } = inShell('bash', ['-c', program, 'bash', ...lines], home)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter(Boolean))
}

describe('in bash, loaded as its user loads it', () => {
  test('commands, subcommands, options and choices come from the table of the commands', () => {
    const [all, ...others] = inBash([`''`, 'ru', 'runs st', '--json up --wor', `hooks install ''`, 'run -- ru'])
    expect(all).toEqual(expect.arrayContaining(['up', 'run', 'completion', 'init', 'doctor']))
    // Behind -- the words are those of another program.
    expect(others).toEqual([['run', 'runs'], ['statement'], ['--workers'], ['claude', 'codex', 'gemini'], []])
  })

  test('ids come from the store, and none is made for the asking', async () => {
    const place = new Installation()
    expect(inBash([`runs show ''`], place.home)).toEqual([[]])
    expect(existsSync(join(place.home, 'holdfast.db'))).toBe(false)
    await place.run(['run', '--thread', 'boss', '--', 'true'])
    const [run] = await place.json<{ id: string }[]>(['runs', 'list'])
    const lines = [`runs show ''`, `--home ${place.home} runs show ${run!.id.slice(0, 6)}`, 'threads show bo']
    expect(inBash(lines, place.home)).toEqual([[run!.id], [run!.id], ['boss']])
  })
})

test.skipIf(!installed('fish'))('fish offers the same, with what each is', () => {
  const program = 'holdfast completion fish | source; complete -C "holdfast runs st"'
  const { stdout, stderr } = inShell('fish', ['-c', program])
  expect({ stdout, stderr }).toEqual({
    stdout: expect.stringMatching(/^statement\tevery effect/) as string,
    stderr: '',
  })
})

test.skipIf(!installed('zsh'))('zsh loads it, and completes in a terminal of its own', () => {
  const home = temporaryFolder()
  writeFileSync(join(home, '.zshrc'), 'autoload -Uz compinit; compinit -u\neval "$(holdfast completion zsh)"\n')
  const program = `
    zmodload zsh/zpty
    zpty shell 'zsh -i'
    zpty -w shell 'PS1=READY'
    zpty -r shell seen '*READY*READY*' || exit 9
    zpty -w -n shell $'holdfast runs stat\\t'
    zpty -r shell seen '*runs statement*' && print found`
  const { stdout, stderr, status } = inShell('zsh', ['-f', '-c', program], home)
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'found\n', stderr: '' })
})
