import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/engines.ts'
import { startProcess, until } from '../support/holdfast.ts'
import { ROOT } from '../tidy/tree.ts'

/** The command line as somebody has it who has just installed it: no configuration, no flags. */
function newcomer() {
  const home = temporaryFolder()
  const start = (...args: string[]) =>
    startProcess(join(ROOT, 'bin/holdfast'), args, { HOLDFAST_HOME: home, HOME: home })
  return { home, start, holdfast: (...args: string[]) => start(...args).ended }
}

test('what init writes is checked by its own rules and runs without a key: the agent asks before it writes', async () => {
  const { home, holdfast, start } = newcomer()
  const told = await holdfast('init')
  expect(told).toMatchObject({ code: 0, stderr: '' })
  expect(told.stdout).toContain('send --agent clerk')
  await expect(loadConfig(join(home, 'holdfast.config.json'))).resolves.toMatchObject({ folder: home })

  const waiting = await holdfast('send', '--agent', 'clerk', '--wait', 'Buy milk.')
  expect(waiting.code).toBe(5)
  const [{ id }] = JSON.parse((await holdfast('approvals', 'list', '--json')).stdout) as [{ id: string }]
  expect(existsSync(join(home, 'notes.txt'))).toBe(false)
  expect((await holdfast('approvals', 'approve', id)).code).toBe(0)
  start('up')
  const notes = join(home, 'notes.txt')
  const isWritten = () => existsSync(notes) && readFileSync(notes, 'utf8').includes('Buy milk.')
  await until('it is written', async () => isWritten() || undefined)
})

test('a second init changes nothing and says where the first one is', async () => {
  const { home, holdfast } = newcomer()
  writeFileSync(join(home, 'holdfast.config.ts'), 'export default {}')
  const again = await holdfast('init')
  expect(again).toMatchObject({ code: 4, stdout: '' })
  expect(again.stderr).toContain('holdfast.config.ts is there already')
  expect(readdirSync(home)).toEqual(['holdfast.config.ts'])
})

test('a folder, a model and clients can be named', async () => {
  const { home, holdfast } = newcomer()
  const folder = join(home, 'project')
  const told = await holdfast('init', folder, '--model', 'anthropic/claude-sonnet-5', '--client', 'claude', 'codex')
  expect(told.stdout).toContain(`--config ${join(folder, 'holdfast.config.json')} up`)
  expect(readdirSync(folder)).toEqual(['holdfast.config.json'])
  const { agents } = await loadConfig(join(folder, 'holdfast.config.json'))
  expect([...agents.keys()]).toEqual(['clerk', 'claude', 'codex'])
  expect(told.stdout).toMatch(/^.* is written: .*"clerk".*; and "claude" and "codex", with "permissions" to read\.\n/)
  expect(told.stdout).toMatch(/export ANTHROPIC_API_KEY=… +your key/)
})

test('what it says to type next can be typed, and a model that no configuration may name is refused before anything is written', async () => {
  const { home, holdfast } = newcomer()
  const folder = join(home, "Ann's project")
  const refused = await holdfast('init', folder, '--model', 'sonnet')
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('"sonnet" names no model')])
  expect(existsSync(folder)).toBe(false)
  for (const model of ['nobody/model-1', 'scripted:', 'anthropic/ x']) {
    const unknown = await holdfast('init', folder, '--model', model)
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining(`"${model}" names no model`)])
    expect(existsSync(folder)).toBe(false)
  }
  const { stdout } = await holdfast('init', folder)
  const ours = `--config '${join(home, "Ann'\\''s project", 'holdfast.config.json')}'`
  expect(stdout).toContain(`${ours} up`)
  expect(stdout).toContain(`${ours} doctor`)
})

test('whoever writes to an agent of a running daemon need not have its configuration', async () => {
  const { home, holdfast, start } = newcomer()
  const folder = join(home, 'elsewhere')
  await holdfast('init', folder)
  const config = join(folder, 'holdfast.config.json')
  const unknown = await holdfast('send', '--agent', 'clerk', 'Buy milk.')
  expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining('`holdfast init` writes one') as string })

  const daemon = start('up', '--config', config)
  await daemon.said('holdfast: up:')
  expect((await holdfast('send', '--agent', 'clerk', '--wait', 'Buy milk.')).code).toBe(5)
  expect((await holdfast('send', '--agent', 'clark', 'Buy milk.')).stderr).toContain('there are: clerk')
  daemon.kill('SIGKILL')
  await daemon.ended
  const vain = await holdfast('send', '--agent', 'clerk', '--wait', 'Buy bread.')
  expect(vain).toMatchObject({ code: 1, stderr: expect.stringContaining('no daemon is running') as string })
})
