import { existsSync, readFileSync, readdirSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { detectSeal } from '../../src/processes/sealed.ts'
import { Installation, until } from '../support/holdfast.ts'
import type { Ended, Running } from '../support/holdfast.ts'
import { Repository } from '../support/repository.ts'
import { typed } from '../server/in-process.ts'

/*
 * From the outermost door: the command line as a person has it, real daemons that are killed, and a repository that is looked at with git
 * alone. `state` is one number for everything that the person has: files, modes, index, branches.
 */

interface Told {
  readonly runId: string
  readonly state: string
  readonly sha?: string
  readonly reason?: string
}

const CHECK = '#!/bin/sh\ntest "$(cat total.txt)" = 3\n'
const GOOD = 'echo 3 > total.txt; echo new > new.txt'

class Scene extends Installation {
  readonly repo = new Repository({ 'total.txt': '1\n', 'check.sh': CHECK, 'notes.txt': 'notes\n' })

  #asked(script: string, flags: readonly string[]): string[] {
    const files = ['--workspace', this.repo.folder, '--workspace-mode', 'transaction']
    return ['run', ...files, ...flags, '--', 'sh', '-c', script]
  }

  /** In this process: to start a program for each look would be most of the time. Daemons are processes of their own. */
  type(...args: readonly string[]): Promise<Ended> {
    return typed(args, { HOLDFAST_HOME: this.home })
  }

  async tell<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse((await this.type('--json', ...args)).stdout) as T
  }

  here(script: string, ...flags: readonly string[]): Promise<Ended> {
    return this.type(...this.#asked(script, flags))
  }

  async away(script: string, ...flags: readonly string[]): Promise<string> {
    const [, ...rest] = this.#asked(script, flags)
    return (await this.tell<{ id: string }>('run', '--detach', ...rest)).id
  }

  told(run: string): Promise<Told> {
    return this.tell<Told>('workspace', 'show', run)
  }

  /** It has come to rest, one way or the other. */
  rests(run: string): Promise<Told> {
    return until(`${run} has come to rest`, async () => {
      const told = await this.tell<Partial<Told>>('workspace', 'show', run)
      return RESTING.includes(told.state ?? '') ? (told as Told) : undefined
    })
  }

  /** For a command to say how far it is. */
  mark(): { readonly path: string; there(): Promise<true> } {
    const path = `${this.ledger}.mark-${(this.#marks += 1)}`
    return { path, there: () => isThere(path) }
  }

  #marks = 0

  /** A check writes nowhere but in its checkout, which is somewhere below the folder of its workspace. */
  inCheck(run: string, name: string): Promise<true> {
    const folder = join(this.home, 'workspaces', run)
    return until(`${name} is there`, () => {
      const files = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
      return Promise.resolve(files.some((file) => basename(file) === name) ? (true as const) : undefined)
    })
  }

  /** Something was recorded of it. */
  async hears(run: string, type: string): Promise<true> {
    return until(`${run} has ${type}`, async () => {
      const events = await this.tell<{ type: string }[]>('runs', 'events', run)
      return events.some((event) => event.type === type) ? true : undefined
    })
  }
}

const isThere = (path: string) =>
  until(`${path} is there`, () => Promise.resolve(existsSync(path) ? (true as const) : undefined))

const RESTING = ['landed', 'ready', 'discarded', 'quarantined', 'kept']
const waitingFor = (gate: string) => `while ! test -e ${gate}; do sleep 0.05; done`

describe('files change only with a success that was checked', () => {
  test('a failed run, a failed check and a check that the run made green all leave everything as it was [X1] [workspace/all-or-nothing]', async () => {
    const scene = new Scene()
    const { repo } = scene
    const before = repo.state
    const ends: readonly (readonly [script: string, flags: readonly string[], code: number])[] = [
      [`${GOOD}; exit 7`, ['--check', './check.sh'], 7],
      ['echo 2 > total.txt', ['--check', './check.sh'], 1],
      [`echo 2 > total.txt; printf '#!/bin/sh\\n' > check.sh`, ['--check', './check.sh'], 1],
      [`echo 2 > total.txt; printf '#!/bin/sh\\n' > check.sh`, ['--check-file', 'check.sh'], 1],
      [GOOD, ['--check', 'sleep 60', '--check-timeout', '200ms'], 1],
      [GOOD, ['--check', './check.sh; echo more >> notes.txt'], 1],
    ]
    for (const [script, flags, code] of ends) {
      const ended = await scene.here(script, ...flags)
      expect([script, flags, ended.code, repo.state]).toEqual([script, flags, code, before])
    }
    const states = await scene.tell<Told[]>('workspace', 'list')
    expect(states.map(({ state }) => state)).toEqual(ends.map(() => 'discarded'))
    // A check that goes its own way: what it would do outside does not happen, where the kernel can be told so.
    const outside = scene.mark()
    const nosy = await scene.here('true', '--check', `touch ${outside.path} notes.txt && touch "$TMPDIR/mine"`)
    if ((await detectSeal()).kind === 'sealed') expect([nosy.code, existsSync(outside.path)]).toEqual([1, false])
    expect(repo.state).toBe(before)
    expect((await scene.here(GOOD, '--check', './check.sh')).code).toBe(0)
    expect([repo.read('total.txt'), repo.read('new.txt'), repo.commits]).toEqual(['3\n', 'new\n', 2])
    repo.git('fsck', '--strict')
  })
})

describe('a crash, or a cancel', () => {
  /** Killed while the command is at work, while the check is, and as soon as the check is over. */
  test('wherever the daemon is killed, there is before or after, and one commit at most [X2] [X4] [workspace/all-or-nothing]', async () => {
    const scene = new Scene()
    const { repo } = scene
    for (const [round, moment] of ['working', 'checking', 'checked'].entries()) {
      const [commits, gate] = [repo.commits, scene.gate()]
      const working = scene.mark()
      const held = (name: string) => (moment === name ? waitingFor(gate.path) : 'true')
      const script = `echo ${round} > round.txt; touch ${working.path}; ${held('working')}`
      const first = await scene.up()
      const run = await scene.away(script, '--check', `touch begun; ${held('checking')}`)
      if (moment === 'working') await working.there()
      else if (moment === 'checking') await scene.inCheck(run, 'begun')
      else await scene.hears(run, 'workspace.checked')
      await killed(first)
      const second = await scene.up()
      gate.open()
      const { state, sha } = await scene.rests(run)
      // Its supervisors go on without the daemon, so nothing that was paid for is thrown away.
      expect([moment, state, repo.head, repo.commits]).toEqual([moment, 'landed', sha, commits + 1])
      expect([repo.read('round.txt'), repo.git('status', '--porcelain')]).toEqual([`${round}\n`, ''])
      await until('nothing of ours is left', () =>
        Promise.resolve(repo.git('for-each-ref', 'refs/holdfast') === '' ? true : undefined),
      )
      await killed(second)
    }
    repo.git('fsck', '--strict')
  })

  test('a cancel while the check is at work moves no branch, and what was done can be looked at [X2]', async () => {
    const scene = new Scene()
    const before = scene.repo.state
    await scene.up()
    const run = await scene.away(GOOD, '--check', 'touch begun; sleep 60')
    await scene.inCheck(run, 'begun')
    expect((await scene.type('runs', 'cancel', run)).code).toBe(0)
    const { state } = await scene.rests(run)
    expect([state, (await scene.tell<Told>('runs', 'show', run)).state, scene.repo.state]).toEqual([
      'discarded',
      'cancelled',
      before,
    ])
    expect((await scene.type('workspace', 'diff', run)).stdout).toContain('+3')
    expect((await scene.type('workspace', 'land', run)).code).toBe(4)
  })
})

async function killed(daemon: Running): Promise<void> {
  daemon.kill('SIGKILL')
  await daemon.ended
}

describe('what the person does meanwhile', () => {
  test('edits, staged changes and commits of theirs are never lost and never overwritten [X3]', async () => {
    const scene = new Scene()
    const { repo } = scene
    await scene.up()
    const meanwhile = async (script: string, act: () => void): Promise<Told> => {
      const [gate, working] = [scene.gate(), scene.mark()]
      const run = await scene.away(`touch ${working.path}; ${waitingFor(gate.path)}; ${script}`)
      await working.there()
      act()
      gate.open()
      return scene.rests(run)
    }
    const edited = await meanwhile(GOOD, () => repo.write('total.txt', 'by hand\n'))
    expect([edited.state, repo.read('total.txt'), existsSync(join(repo.folder, 'new.txt'))]).toEqual([
      'ready',
      'by hand\n',
      false,
    ])
    repo.git('add', 'total.txt')
    const staged = await meanwhile(GOOD, () => {})
    expect([staged.state, repo.git('diff', '--cached', '--name-only')]).toEqual(['ready', 'total.txt'])
    const committed = await meanwhile('echo more > other.txt', () => repo.commit('mine'))
    expect([committed.state, repo.read('total.txt'), repo.read('other.txt')]).toEqual(['landed', 'by hand\n', 'more\n'])
    expect(repo.git('log', '--format=%s', '-2', '--skip=1').split('\n')).toEqual(['mine', 'first'])
    const clash = await meanwhile('echo theirs > notes.txt', () => {
      repo.write('notes.txt', 'mine\n')
      repo.commit('notes')
    })
    expect([clash.state, repo.read('notes.txt'), repo.git('status', '--porcelain')]).toEqual(['ready', 'mine\n', ''])
    // What waits lands by one command, once that is possible; what cannot says so again.
    expect((await scene.type('workspace', 'land', clash.runId)).code).toBe(4)
    expect(repo.read('notes.txt')).toBe('mine\n')
    repo.git('fsck', '--strict')
  })
})

describe('what cannot be proven', () => {
  test('is put into quarantine, and a person retries, keeps or discards it [X4]', async () => {
    const scene = new Scene()
    const { repo } = scene
    const before = repo.state
    const [gate, working] = [scene.gate(), scene.mark()]
    const daemon = await scene.up()
    const run = await scene.away(`${GOOD}; touch ${working.path}; ${waitingFor(gate.path)}`)
    await working.there()
    const elsewhere = `${repo.folder}-away`
    renameSync(repo.folder, elsewhere)
    gate.open()
    const told = await scene.rests(run)
    expect([told.state, told.reason]).toEqual(['quarantined', expect.stringContaining('no repository')])
    expect((await scene.type('doctor')).stdout).toContain(`${run} is in quarantine`)
    await killed(daemon)
    renameSync(elsewhere, repo.folder)
    // Nobody touches it meanwhile, whoever starts.
    await scene.up()
    expect((await scene.told(run)).state).toBe('quarantined')
    expect((await scene.type('workspace', 'diff', run)).code).not.toBe(0)
    const retried = await scene.type('workspace', 'retry', run)
    expect([retried.code, retried.stdout]).toEqual([0, `${run} discarded; your tree is as it was\n`])
    expect(repo.state).toBe(before)
    expect((await scene.type('workspace', 'keep', run)).code).toBe(0)
    expect(repo.git('show', `holdfast/${run}:new.txt`)).toBe('new')
  })
})

describe('what outlives a discard', () => {
  test('the run, its events, its notes and what the check said are still there [X5]', async () => {
    const scene = new Scene()
    const ended = await scene.here('echo 2 > total.txt; echo "I gave up" >&2', '--check', 'echo "2 is not 3"; exit 1')
    expect(ended.code).toBe(1)
    const [{ runId, state }] = (await scene.tell<Told[]>('workspace', 'list')) as [Told]
    expect(state).toBe('discarded')
    const shown = await scene.tell<Record<string, unknown>>('runs', 'show', runId)
    expect(JSON.stringify(shown)).toContain('I gave up')
    expect(shown).toMatchObject({
      code: 'validation',
      workspace: { check: { output: expect.stringContaining('2 is not 3') } },
    })
    const events = await scene.tell<{ type: string }[]>('runs', 'events', runId)
    const types = events.map(({ type }) => type).filter((type) => type.startsWith('workspace.'))
    expect(types).toEqual([
      'workspace.opened',
      'workspace.prepared',
      'workspace.checked',
      'workspace.discarding',
      'workspace.discarded',
    ])
    const statement = (await scene.type('runs', 'statement', runId)).stdout
    expect(statement).toContain('discarded; your tree is as it was')
    expect(readFileSync(join(scene.repo.folder, 'total.txt'), 'utf8')).toBe('1\n')
  })
})
