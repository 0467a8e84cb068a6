import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { CLIENT_NAMES, factsOf, settingsFile } from '../../src/hooks/install/client.ts'
import type { ClientName, Scope } from '../../src/hooks/install/client.ts'
import type { Wanted } from '../../src/hooks/install/entries.ts'
import { carryOut, installedChoices, planInstall, planRemove } from '../../src/hooks/install/install.ts'
import type { Place } from '../../src/hooks/install/install.ts'
import { hasPassword, hookProgram, storeToWrite } from '../../src/hooks/install/program.ts'
import { examineHooks, statusOf } from '../../src/hooks/install/status.ts'
import { Unreadable } from '../../src/hooks/event.ts'
import { readClaude } from '../../src/hooks/claude.ts'
import { readCodex } from '../../src/hooks/codex.ts'
import { readGemini } from '../../src/hooks/gemini.ts'
import { temporaryFolder } from '../support/engines.ts'
import { samples, wantedFor } from './install-support.ts'

/** A user with an empty home, and a Holdfast whose hook script exists. */
class User {
  readonly folder: string
  readonly script: string

  constructor(folder = temporaryFolder()) {
    this.folder = folder
    this.script = join(folder, 'holdfast', 'bin', 'hook.cjs')
    mkdirSync(dirname(this.script), { recursive: true })
    writeFileSync(this.script, '')
  }

  place(client: ClientName, scope: Scope = { kind: 'user' }, variables: Record<string, string> = {}): Place {
    const surroundings = { userHome: join(this.folder, 'user'), variables }
    return { client, scope, home: join(this.folder, 'state'), surroundings }
  }

  file(client: ClientName, scope: Scope = { kind: 'user' }): string {
    const path = settingsFile(client, scope, this.place(client).surroundings)
    mkdirSync(dirname(path), { recursive: true })
    return path
  }

  wanted(client: ClientName, more: Partial<Wanted> = {}): Wanted {
    return wantedFor(client, { node: process.execPath, script: this.script, ...more })
  }

  async install(client: ClientName, scope?: Scope, more: Partial<Wanted> = {}) {
    const change = await planInstall(this.place(client, scope), this.wanted(client, more))
    return { change, ...(await carryOut(change)) }
  }

  async remove(client: ClientName, scope?: Scope) {
    const change = await planRemove(this.place(client, scope))
    await carryOut(change)
    return change
  }

  status(client: ClientName, folders: readonly string[] = [], more: Partial<Wanted> = {}) {
    const { home, surroundings } = this.place(client)
    return statusOf({ clients: [client], folders, home, surroundings, wanted: (name) => this.wanted(name, more) })
  }
}

const OWN = '{\n  "model": "opus",\n  "hooks": { "Stop": [] }\n}\n'

describe('installing', () => {
  test.each(CLIENT_NAMES)(
    '%s: adds, updates in place, removes to the byte, and deletes what it created',
    async (client) => {
      const user = new User()
      const path = settingsFile(client, { kind: 'user' }, user.place(client).surroundings)
      expect((await user.install(client)).change.kind).toBe('first')
      expect((await user.install(client)).change.kind).toBe('none')
      expect((await user.install(client, undefined, { home: '/elsewhere' })).change.kind).toBe('update')
      expect(readFileSync(path, 'utf8')).toContain('/elsewhere')
      expect((await user.remove(client)).kind).toBe('remove')
      expect(existsSync(path)).toBe(false)
      expect((await user.remove(client)).kind).toBe('none')
    },
  )

  test('and removing leaves any file as it was, to the byte', async () => {
    const user = new User()
    await fc.assert(
      fc.asyncProperty(samples, fc.boolean(), async ({ client, text }, updated) => {
        const path = user.file(client)
        writeFileSync(path, text)
        await user.install(client)
        if (updated) await user.install(client, undefined, { home: '/elsewhere' })
        expect((await user.remove(client)).kind).toBe('remove')
        expect(readFileSync(path, 'utf8')).toBe(text)
      }),
      { numRuns: 60 },
    )
  })

  test('keeps the former file beside the database, for its owner alone', async () => {
    const user = new User()
    writeFileSync(user.file('claude'), OWN)
    const { backup } = await user.install('claude')
    expect(readFileSync(backup!, 'utf8')).toBe(OWN)
    expect(statSync(backup!).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(backup!)).mode & 0o777).toBe(0o700)
  })

  test('keeps the permissions of the file', async () => {
    const user = new User()
    const path = user.file('claude')
    writeFileSync(path, OWN)
    chmodSync(path, 0o640)
    await user.install('claude')
    expect(statSync(path).mode & 0o777).toBe(0o640)
  })

  test('writes through links, as in a repository of dotfiles, also to a file that is not there yet', async () => {
    const user = new User()
    const path = user.file('gemini')
    const dotfiles = join(user.folder, 'dotfiles')
    mkdirSync(dotfiles)
    symlinkSync('../../dotfiles/gemini.json', path)
    await user.install('gemini')
    expect(lstatSync(path).isSymbolicLink()).toBe(true)
    expect(readFileSync(join(dotfiles, 'gemini.json'), 'utf8')).toContain('--holdfast-hook')
    expect(readdirSync(dotfiles)).toEqual(['gemini.json'])
    await user.remove('gemini')
    expect(lstatSync(path).isSymbolicLink()).toBe(true)
    expect(existsSync(path)).toBe(false)
  })

  test('does not write over what somebody changed after it was shown', async () => {
    const user = new User()
    const path = user.file('claude')
    writeFileSync(path, OWN)
    const change = await planInstall(user.place('claude'), user.wanted('claude'))
    writeFileSync(path, '{ "model": "other" }')
    await expect(carryOut(change)).rejects.toMatchObject({ code: 'hooks/changed-meanwhile' })
    expect(readFileSync(path, 'utf8')).toBe('{ "model": "other" }')
    expect(readdirSync(dirname(path))).toEqual(['settings.json'])
    // Nor is anything lost of the way back: another try, and removing gives what the other wrote.
    await user.install('claude')
    await user.remove('claude')
    expect(readFileSync(path, 'utf8')).toBe('{ "model": "other" }')
  })

  test('nor over a file that appeared after it was shown', async () => {
    const user = new User()
    const path = user.file('codex')
    const change = await planInstall(user.place('codex'), user.wanted('codex'))
    writeFileSync(path, '{}')
    await expect(carryOut(change)).rejects.toMatchObject({ code: 'hooks/changed-meanwhile' })
    expect(readFileSync(path, 'utf8')).toBe('{}')
  })

  test('refuses what is not JSON, names the line and touches nothing', async () => {
    const user = new User()
    const cases: [ClientName, string | Buffer, RegExp][] = [
      ['claude', '{\n  "a": 1,\n}', /line 3: the comma before is one too many/],
      ['claude', '{\n  // mine\n  "a": 1 }', /line 2: this file may have no comments/],
      ['codex', '[]', /an object in braces/],
      ['gemini', '{ "a": 1, "a": 2 }', /"a" is here a second time/],
      ['gemini', '{ "hooks": [] }', /"hooks" in .* is not what the client expects/],
      ['gemini', '{ "hooks": { "AfterAgent": {} } }', /"AfterAgent" in .* is not what the client expects/],
      ['claude', Buffer.from([0x7b, 0xff, 0x7d]), /not text in UTF-8/],
    ]
    for (const [client, content, says] of cases) {
      writeFileSync(user.file(client), content)
      await expect(user.install(client)).rejects.toThrow(says)
      expect(readFileSync(user.file(client))).toEqual(Buffer.from(content))
    }
    expect(existsSync(join(user.folder, 'state'))).toBe(false)
  })

  test('takes an empty file for one that says nothing, and leaves it empty again', async () => {
    const user = new User()
    writeFileSync(user.file('claude'), '\n')
    await user.install('claude')
    expect((await user.status('claude'))[0]?.state).toBe('installed')
    await user.remove('claude')
    expect(readFileSync(user.file('claude'), 'utf8')).toBe('\n')
  })

  test('removing works without the backup, and leaves what others added since', async () => {
    const user = new User()
    writeFileSync(user.file('claude'), OWN)
    await user.install('claude')
    rmSync(join(user.folder, 'state'), { recursive: true })
    const text = readFileSync(user.file('claude'), 'utf8').replace('"opus"', '"haiku"')
    writeFileSync(user.file('claude'), text)
    await user.remove('claude')
    expect(JSON.parse(readFileSync(user.file('claude'), 'utf8'))).toEqual({ model: 'haiku' })
  })

  test('for a project writes the private file of that project', async () => {
    const user = new User()
    const folder = temporaryFolder()
    await user.install('claude', { kind: 'project', folder })
    await user.install('codex', { kind: 'project', folder })
    await user.install('gemini', { kind: 'project', folder })
    const there = ['.claude/settings.local.json', '.codex/hooks.json', '.gemini/settings.json']
    expect(there.filter((name) => existsSync(join(folder, name)))).toEqual(there)
    expect(existsSync(join(user.folder, 'user'))).toBe(false)
  })

  test('goes where the variables of the client say', () => {
    const { surroundings } = new User().place('claude', undefined, {
      CLAUDE_CONFIG_DIR: '/c',
      CODEX_HOME: '/x',
      GEMINI_CLI_HOME: '/g',
    })
    const files = CLIENT_NAMES.map((client) => settingsFile(client, { kind: 'user' }, surroundings))
    expect(files).toEqual(['/c/settings.json', '/x/hooks.json', '/g/.gemini/settings.json'])
  })

  test('listens to no event that the handler does not understand', () => {
    const readers = { claude: readClaude, codex: readCodex, gemini: readGemini }
    for (const client of CLIENT_NAMES) {
      for (const event of Object.keys(factsOf(client).events)) {
        const heard = readers[client](JSON.stringify({ hook_event_name: event, session_id: 's' }))
        expect(heard, `${client} ${event}`).not.toBeInstanceOf(Unreadable)
      }
    }
  })

  test('never writes a password down', () => {
    const secrets = [
      'postgres://me:secret@db/agents',
      'postgresql://db/agents?password=secret',
      'postgres://db/a?x=1&sslpassword=s',
    ]
    for (const store of secrets) {
      expect(hasPassword(store)).toBe(true)
      expect(() => storeToWrite(store)).toThrow(/must not be written/)
      expect(() => storeToWrite(store)).not.toThrow(/secret/)
    }
    expect(storeToWrite('postgres://me@db:5432/agents')).toBe('postgres://me@db:5432/agents')
    expect(storeToWrite('sqlite:x.db')).toBe(`sqlite:${join(process.cwd(), 'x.db')}`)
  })

  test('starts the Node of a clone by its lasting name, and that of an installed package by its own', () => {
    const { node, script } = hookProgram()
    expect([existsSync(node), existsSync(script)]).toEqual([true, true])
    const root = temporaryFolder()
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true })
    writeFileSync(join(root, 'node_modules/.bin/node'), '')
    expect(hookProgram(root).node).toBe(process.execPath)
    mkdirSync(join(root, 'src'))
    expect(hookProgram(root)).toEqual({
      node: join(root, 'node_modules/.bin/node'),
      script: join(root, 'bin/hook.cjs'),
    })
  })
})

describe('the status', () => {
  const edit = (path: string, change: (text: string) => string) => {
    const before = readFileSync(path, 'utf8')
    const after = change(before)
    expect(after).not.toBe(before)
    writeFileSync(path, after)
  }

  test('is not installed, installed, and after removing not installed', async () => {
    const user = new User()
    expect(await user.status('codex')).toMatchObject([{ state: 'not-installed', drift: [] }])
    await user.install('codex')
    expect(await user.status('codex')).toMatchObject([{ state: 'installed', drift: [] }])
    await user.remove('codex')
    expect(await user.status('codex')).toMatchObject([{ state: 'not-installed' }])
  })

  test('an asynchronous Stop is drift, and installing puts it right [M7]', async () => {
    const user = new User()
    await user.install('claude')
    edit(user.file('claude'), (text) => text.replace('"timeout": 60', '"timeout": 60, "async": true'))
    expect(await user.status('claude')).toMatchObject([
      { state: 'drifted', drift: [{ what: 'asynchronous', events: ['Stop'] }] },
    ])
    await user.install('claude')
    expect(await user.status('claude')).toMatchObject([{ state: 'installed' }])
    await user.remove('claude')
    expect(existsSync(user.file('claude'))).toBe(false)
  })

  test('who waits in the background beside an idle session is no drift, and one that would keep it waiting is [M7]', async () => {
    const user = new User()
    await user.install('claude')
    const { hooks } = JSON.parse(readFileSync(user.file('claude'), 'utf8')) as { hooks: { Stop: unknown[] } }
    expect(hooks.Stop).toMatchObject([
      { hooks: [{ timeout: 60 }] },
      { hooks: [{ asyncRewake: true, args: expect.arrayContaining(['--wait']) as string[] }] },
    ])
    expect(await user.status('claude')).toMatchObject([{ state: 'installed', drift: [] }])
    edit(user.file('claude'), (text) => text.replaceAll('"asyncRewake": true', '"asyncRewake": false'))
    expect(await user.status('claude')).toMatchObject([
      { state: 'drifted', drift: [{ what: 'changed', events: ['SessionStart', 'Stop'] }] },
    ])
    await user.install('claude')
    edit(user.file('claude'), (text) => text.replace('"timeout": 60', '"timeout": 60, "asyncRewake": true'))
    expect(await user.status('claude')).toMatchObject([
      { state: 'drifted', drift: [{ what: 'asynchronous', events: ['Stop'] }] },
    ])
  })

  test('permissions are touched only where that was chosen, and a gate that fails is closed', async () => {
    const user = new User()
    await user.install('claude')
    expect(readFileSync(user.file('claude'), 'utf8')).not.toContain('--permit')
    expect(await user.status('claude')).toMatchObject([{ permissions: false }])
    await user.install('claude', undefined, { permissions: true })
    const { hooks } = JSON.parse(readFileSync(user.file('claude'), 'utf8')) as { hooks: Record<string, unknown> }
    expect(hooks['PreToolUse']).toMatchObject([{ hooks: [{ type: 'command', onFailure: 'block' }] }])
    expect(await user.status('claude')).toMatchObject([{ state: 'installed', permissions: true, drift: [] }])
  })

  test('what was chosen besides is no drift', async () => {
    const user = new User()
    const chosen = { daemon: 'http://127.0.0.1:4780', startDaemon: true, permissions: true }
    await user.install('claude', undefined, chosen)
    expect(await user.status('claude')).toMatchObject([{ state: 'installed', drift: [] }])
    expect(await installedChoices(user.place('claude'))).toEqual(chosen)
    const [moved] = await user.status('claude', [], { daemon: 'http://127.0.0.1:5000' })
    expect(moved?.drift).toMatchObject([{ what: 'changed', events: ['PreToolUse', 'PostToolUse'] }])
  })

  test.each<[string, (text: string) => string, string]>([
    ['a missing event', (text) => text.replace('"StopFailure"', '"Setup"'), 'missing'],
    ['a changed timeout', (text) => text.replace('"timeout": 60', '"timeout": 1'), 'changed'],
    ['a matcher', (text) => text.replace('"Stop": [\n      {', '"Stop": [\n      { "matcher": "x",'), 'narrowed'],
    ['disableAllHooks', (text) => text.replace('{', '{ "disableAllHooks": true,'), 'disabled'],
    ['what is no longer JSON', (text) => `${text}}`, 'unreadable'],
  ])('%s is drift', async (_, change, what) => {
    const user = new User()
    await user.install('claude')
    edit(user.file('claude'), change)
    const [status] = await user.status('claude')
    expect(status?.state).toBe('drifted')
    expect(status?.drift.map((drift) => drift.what)).toContain(what)
  })

  test('programs that are gone, another Holdfast and another home are drift', async () => {
    const user = new User()
    await user.install('claude')
    const [moved] = await user.status('claude', [], { script: '/other/bin/hook.cjs' })
    expect(moved?.drift).toMatchObject([{ what: 'other-program' }])
    const [elsewhere] = await user.status('claude', [], { home: '/elsewhere' })
    expect(elsewhere?.drift).toMatchObject([{ what: 'other-place' }])
    rmSync(user.script)
    const [gone] = await user.status('claude')
    expect(gone?.drift).toMatchObject([{ what: 'program-gone' }])
  })

  test('switches that turn all hooks off are seen in Codex and Gemini too', async () => {
    const user = new User()
    await user.install('codex')
    const config = join(dirname(user.file('codex')), 'config.toml')
    writeFileSync(config, 'model = "x"\n[features]\nother = true\nhooks = false\n[tui]\n')
    expect(await user.status('codex')).toMatchObject([{ drift: [{ what: 'disabled' }] }])
    writeFileSync(config, '[features]\nother = true\n[elsewhere]\nhooks = false\n')
    expect(await user.status('codex')).toMatchObject([{ state: 'installed' }])
    writeFileSync(user.file('gemini'), '{ "hooksConfig": { "disabled": ["holdfast"] } }')
    await user.install('gemini')
    expect(await user.status('gemini')).toMatchObject([{ drift: [{ what: 'disabled' }] }])
  })

  test('a project and the user at once is drift, in whichever file of the project it stands', async () => {
    const user = new User()
    const folder = temporaryFolder()
    await user.install('claude', { kind: 'project', folder })
    expect(await user.status('claude')).toMatchObject([{ state: 'not-installed' }, { folder, state: 'installed' }])
    await user.install('claude')
    expect(await user.status('claude')).toMatchObject([{ state: 'installed' }, { drift: [{ what: 'also-for-user' }] }])
    const other = temporaryFolder()
    mkdirSync(join(other, '.claude'))
    writeFileSync(join(other, '.claude/settings.json'), readFileSync(user.file('claude')))
    const statuses = await user.status('claude', [other])
    expect(statuses.map(({ path, state }) => [path, state])).toContainEqual([
      join(other, '.claude/settings.json'),
      'drifted',
    ])
  })

  test('the doctor speaks of clients that have our entries, and of no others', async () => {
    const user = new User()
    const { home, surroundings } = user.place('claude')
    const examine = () => examineHooks({ home, surroundings, wanted: (name) => user.wanted(name) })
    writeFileSync(user.file('gemini'), 'not JSON')
    expect(await examine()).toEqual([])
    await user.install('claude')
    expect(await examine()).toMatchObject([{ check: 'hooks of Claude Code', status: 'ok' }])
    edit(user.file('claude'), (text) => text.replace('"timeout": 60', '"timeout": 60, "async": true'))
    expect(await examine()).toMatchObject([
      { status: 'warn', remedy: '`holdfast hooks install claude` puts them right' },
    ])
  })
})
