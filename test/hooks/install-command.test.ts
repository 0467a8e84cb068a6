import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text as allOf } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import { describe, expect, test } from 'vitest'

import { temporaryFolder } from '../support/engines.ts'
import { startProcess } from '../support/holdfast.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/holdfast', import.meta.url))

interface Handler {
  readonly command: string
  readonly args: readonly string[]
}
interface Settings {
  readonly hooks: Readonly<Record<string, readonly [{ readonly hooks: readonly [Handler] }]>>
}

/** A user with a home of their own; the name of the folder has a blank in it, as people's have. */
function someone() {
  const folder = join(temporaryFolder(), 'some one')
  mkdirSync(folder)
  const env = { HOME: folder, HOLDFAST_HOME: join(folder, 'state') }
  const settings = join(folder, '.claude', 'settings.json')
  return {
    folder,
    env,
    settings,
    read: (path = settings) => JSON.parse(readFileSync(path, 'utf8')) as Settings,
    write: (text: string) => {
      mkdirSync(dirname(settings), { recursive: true })
      writeFileSync(settings, text)
    },
    holdfast: (...args: readonly string[]) => startProcess(PROGRAM, args, env).ended,
    with: (more: Record<string, string>, ...args: readonly string[]) =>
      startProcess(PROGRAM, args, { ...env, ...more }).ended,
  }
}

async function startWith(input: object, program: string, args: readonly string[], env: Record<string, string>) {
  // Not our variables: a client may be started without them.
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'] ?? '', HOME: env['HOME'] ?? '' },
    stdio: 'pipe',
  })
  child.stdin.end(JSON.stringify(input))
  const [code, stderr] = await Promise.all([
    new Promise<number | null>((resolve) => child.once('close', resolve)),
    allOf(child.stderr),
  ])
  return { code, stderr }
}

describe('holdfast hooks', () => {
  test('without a terminal it shows the diff, changes nothing and waits for a person', async () => {
    const { holdfast, settings, folder } = someone()
    const { code, stdout, stderr } = await holdfast('hooks', 'install', 'claude')
    expect(code).toBe(5)
    expect(stdout).toMatch(/^--- \/dev\/null\n\+\+\+ .*settings\.json\n@@ -0,0 \+1,/)
    expect(stderr).toContain('nothing was changed; look at it, then say --yes')
    expect(existsSync(settings)).toBe(false)
    expect(readdirSync(folder)).toEqual([])
  })

  test('--dry-run touches nothing', async () => {
    const { holdfast, folder } = someone()
    const { code, stdout } = await holdfast('hooks', 'install', 'gemini', '--dry-run', '--yes')
    expect(code).toBe(0)
    expect(stdout).toContain('+            "timeout": 60000')
    expect(readdirSync(folder)).toEqual([])
  })

  test('installs, says so, is found by status and doctor, and is gone again after remove [M7]', async () => {
    const { holdfast, settings, write } = someone()
    const own = '{\n    "model": "opus"\n}'
    write(own)
    expect((await holdfast('hooks', 'status', 'claude')).code).toBe(3)
    const installed = await holdfast('hooks', 'install', 'claude', '--yes')
    expect(installed).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('installed: Claude Code reports to Holdfast'),
    })
    const again = await holdfast('hooks', 'install', 'claude', '--yes', '--json')
    expect(JSON.parse(again.stdout)).toMatchObject({ outcome: 'nothing-to-do', diff: '' })
    expect((await holdfast('hooks', 'status')).code).toBe(0)

    writeFileSync(settings, readFileSync(settings, 'utf8').replace('"timeout": 60', '"async": true'))
    const [status, doctor] = await Promise.all([holdfast('hooks', 'status', '--json'), holdfast('doctor', '--json')])
    expect(status.code).toBe(1)
    expect(JSON.parse(status.stdout)).toMatchObject([
      { client: 'claude', state: 'drifted' },
      { client: 'codex' },
      { client: 'gemini' },
    ])
    expect((JSON.parse(doctor.stdout) as { findings: unknown[] }).findings).toContainEqual(
      expect.objectContaining({
        check: 'hooks of Claude Code',
        status: 'warn',
        detail: expect.stringContaining('Stop') as string,
      }),
    )

    await holdfast('hooks', 'install', 'claude', '--yes')
    expect((await holdfast('hooks', 'remove', 'claude', '--yes')).code).toBe(0)
    expect(readFileSync(settings, 'utf8')).toBe(own)
    expect((await holdfast('hooks', 'remove', 'claude', '--yes')).stdout).toContain('not installed')
  })

  test('what was installed works: each client, started without our variables, reaches the home it was installed for', async () => {
    const { holdfast, env, read, folder } = someone()
    await holdfast('hooks', 'install', 'claude', '--yes')
    const project = join(folder, 'project')
    mkdirSync(project)
    await holdfast('hooks', 'install', 'codex', '--project', project, '--yes')
    await holdfast('hooks', 'install', 'gemini', '--yes')
    const start = { hook_event_name: 'SessionStart', source: 'startup', cwd: project }
    const claude = read().hooks['SessionStart']![0].hooks[0]
    const codex = read(join(project, '.codex', 'hooks.json')).hooks['SessionStart']![0].hooks[0]
    const gemini = read(join(folder, '.gemini', 'settings.json')).hooks['SessionStart']![0].hooks[0]
    const ends = [
      await startWith({ ...start, session_id: 'one' }, claude.command, claude.args, env),
      await startWith({ ...start, session_id: 'two' }, '/bin/sh', ['-c', codex.command], env),
      await startWith({ ...start, session_id: 'three' }, '/bin/sh', ['-c', gemini.command], env),
    ]
    expect(ends).toEqual(ends.map(() => ({ code: 0, stderr: '' })))
    const { stdout } = await holdfast('threads', 'list', '--json')
    const ids = (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id)
    expect(ids.toSorted()).toEqual(['claude-one', 'codex-two', 'gemini-three'])
  })

  test('Codex: says that the user has to trust them', async () => {
    const { stderr } = await someone().holdfast('hooks', 'install', 'codex', '--yes')
    expect(stderr).toContain('open /hooks and trust them')
  })

  test('for the user and a project at once is refused', async () => {
    const { holdfast, folder } = someone()
    await holdfast('hooks', 'install', 'claude', '--yes')
    const { code, stderr } = await holdfast('hooks', 'install', 'claude', '--project', folder, '--yes')
    expect(code).toBe(4)
    expect(stderr).toContain('remove those first: holdfast hooks remove claude')
  })

  test('a store with a password is refused, or left to the environment', async () => {
    const { with: holdfast, settings } = someone()
    const store = { HOLDFAST_STORE: 'postgres://me:secret@db.example/agents' }
    const refused = await holdfast(store, 'hooks', 'install', 'claude', '--yes')
    expect(refused.code).toBe(2)
    expect(`${refused.stdout}${refused.stderr}`).not.toContain('secret')
    expect(existsSync(settings)).toBe(false)
    await holdfast(store, 'hooks', 'install', 'claude', '--yes', '--store-from-env')
    expect(readFileSync(settings, 'utf8')).not.toContain('db.example')
    expect((await holdfast(store, 'hooks', 'status', 'claude')).code).toBe(0)
  })

  test('wrong use is said to be, with exit 2', async () => {
    const { holdfast, folder } = someone()
    const ends = await Promise.all([
      holdfast('hooks', 'install', 'emacs'),
      holdfast('hooks', 'install', 'claude', '--project', join(folder, 'nowhere'), '--yes'),
      holdfast('hooks', 'install', 'claude', '--tools', '--yes'),
      holdfast('hooks', 'install', 'codex', '--tools', '--yes'),
    ])
    expect(ends.map(({ code }) => code)).toEqual([2, 2, 2, 2])
  })

  test('the instructions for a conductor begin with the inbox', async () => {
    const { stdout } = await someone().holdfast('hooks', 'template')
    expect(/^1\. .*$/m.exec(stdout)?.[0]).toContain('`holdfast inbox drain self`')
  })
})

const hasScript = spawnSync('script', ['--version']).status === 0

// `script` of util-linux gives a program a terminal; without it nobody can be asked.
describe.skipIf(!hasScript)('on a terminal', () => {
  async function onTerminal(
    env: Record<string, string>,
    answer: string,
  ): Promise<{ code: number | null; shown: string }> {
    const command = `"${PROGRAM}" hooks install claude`
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm', ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    let shown = ''
    child.stdout.on('data', (chunk: Buffer) => {
      const asked = shown.includes('[y/N]')
      shown += chunk.toString()
      if (!asked && shown.includes('[y/N]')) child.stdin.write(`${answer}\n`)
    })
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
    return { code, shown }
  }

  test('it asks, and only a yes is a yes; colour is for eyes', async () => {
    const { env, settings } = someone()
    const no = await onTerminal(env, '')
    expect(no.code).toBe(4)
    expect(no.shown).toContain('\u001b[32m+')
    expect(existsSync(settings)).toBe(false)
    const yes = await onTerminal({ ...env, NO_COLOR: '1' }, 'y')
    expect(yes.code).toBe(0)
    expect(yes.shown).not.toContain('\u001b[32m')
    expect(existsSync(settings)).toBe(true)
  })
})
