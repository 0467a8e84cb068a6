import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { detectSeal } from '../../src/processes/sealed.ts'
import { temporaryFolder } from '../support/engines.ts'

const seal = await detectSeal()
if (seal.kind === 'open') console.log(`Nothing can be sealed here: ${seal.detail}`)

test.runIf(seal.kind === 'sealed')('a sealed command writes in its folders and nowhere else, as who it was', () => {
  if (seal.kind !== 'sealed') return
  const folder = temporaryFolder()
  const [own, odd] = [join(folder, 'own'), join(folder, 'od d\\040')]
  mkdirSync(own)
  mkdirSync(odd)
  const script = `id -u > who.txt; touch "$ODD/there"
    touch ../outside 2> refused.txt; touch "$HOME/outside" 2>> refused.txt; echo fine > /dev/null && pwd > where.txt
    test ! -e ../outside`
  const [program, ...args] = seal.wrap(['/bin/sh', '-c', script], { cwd: own, writable: [own, odd] })
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, ODD: odd }
  execFileSync(program, args, { cwd: own, env, stdio: ['ignore', 'inherit', 'inherit'] })
  expect(readFileSync(join(own, 'who.txt'), 'utf8').trim()).toBe(String(process.getuid?.()))
  expect(readFileSync(join(own, 'where.txt'), 'utf8').trim()).toBe(own)
  expect([existsSync(join(odd, 'there')), existsSync(join(folder, 'outside'))]).toEqual([true, false])
  expect(readFileSync(join(own, 'refused.txt'), 'utf8').split('\n').filter(Boolean)).toHaveLength(2)
  // What it was for is over with it.
  execFileSync('touch', [join(folder, 'outside')])
})

test.runIf(seal.kind === 'sealed')('its exit status and its output are its own', () => {
  if (seal.kind !== 'sealed') return
  const folder = temporaryFolder()
  const [program, ...args] = seal.wrap(['/bin/sh', '-c', 'echo out; exit 7'], { cwd: folder, writable: [folder] })
  try {
    execFileSync(program, args, { cwd: folder })
    expect.unreachable()
  } catch (error) {
    expect(error).toMatchObject({ status: 7, stdout: Buffer.from('out\n') })
  }
})
