import { expect, test } from 'vitest'

import { CLIENTS } from '../sessions/session.ts'
import { PERMISSIONS, PRESETS, sessionName } from './preset.ts'

const SETTINGS = { model: 'm', permissions: 'edits', args: ['--more'] } as const

test('Claude Code gets the name of its session, or the one to go on with', () => {
  const settings = { name: 'claude', ...SETTINGS } as const
  const common = [
    '-p',
    '--output-format',
    'stream-json',
    '--verbose',
    '--model',
    'm',
    '--permission-mode',
    'acceptEdits',
  ]
  expect(PRESETS.claude.args(settings, { begin: 's' })).toEqual([...common, '--more', '--session-id', 's'])
  expect(PRESETS.claude.args(settings, { resume: 's' })).toEqual([...common, '--more', '--resume', 's'])
})

test('Codex names its session itself, and reads the prompt from standard input', () => {
  const settings = { name: 'codex', ...SETTINGS } as const
  const common = ['exec', '--json', '--skip-git-repo-check', '--model', 'm', '--sandbox', 'workspace-write', '--more']
  expect(PRESETS.codex.args(settings, undefined)).toEqual([...common, '-'])
  expect(PRESETS.codex.args(settings, { resume: 's' })).toEqual([...common, 'resume', 's', '-'])
})

test('Gemini CLI gets the name of its session, or the one to go on with', () => {
  const settings = { name: 'gemini', ...SETTINGS } as const
  const common = ['--output-format', 'stream-json', '--skip-trust', '--model', 'm', '--approval-mode', 'auto_edit']
  expect(PRESETS.gemini.args(settings, { begin: 's' })).toEqual([...common, '--more', '--session-id', 's'])
  expect(PRESETS.gemini.args(settings, { resume: 's' })).toEqual([...common, '--more', '--resume', 's'])
})

test('without settings nothing is said about the model or about what it may do', () => {
  for (const name of CLIENTS) {
    const plain = PRESETS[name].args({ name, args: [] }, undefined)
    for (const permissions of PERMISSIONS) {
      const more = PRESETS[name].args({ name, args: [], permissions }, undefined)
      expect(more.filter((word) => !plain.includes(word)).length).toBeGreaterThan(0)
    }
    expect(plain.join(' ')).not.toMatch(/model|permission|sandbox|approval|yolo|bypass/)
  }
})

test('the name of a session is a UUID, the same for the same attempt', () => {
  expect(sessionName('att_1')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(sessionName('att_1')).toBe(sessionName('att_1'))
  expect(sessionName('att_1')).not.toBe(sessionName('att_2'))
})
