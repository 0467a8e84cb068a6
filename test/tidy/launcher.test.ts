import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { dottedName, parse, walk } from './syntax.ts'
import { ROOT, readSource } from './tree.ts'

/** What the Node of 2019 (12) cannot read, and so could not even refuse politely. */
const YOUNG = /^(ChainExpression|PropertyDefinition|PrivateIdentifier|StaticBlock|TSTypeAnnotation)$/
const YOUNG_OPERATORS = ['??', '??=', '||=', '&&=']

function youngSyntax(text: string): string[] {
  const found: string[] = []
  walk(parse({ path: 'bin/holdfast.cjs', text: text.replace(/^#!.*/, '') }), (node) => {
    if (YOUNG.test(node.type)) found.push(node.type)
    if (YOUNG_OPERATORS.includes(String(node['operator']))) found.push(String(node['operator']))
    if (node.type === 'ImportDeclaration') found.push('import')
    const [argument] = (node['arguments'] as { value?: unknown }[] | undefined) ?? []
    if (dottedName(node['callee']) === 'require' && String(argument?.value).startsWith('node:')) found.push('node:')
  })
  return found
}

test('the launcher can be read by a Node that is too old to run Holdfast', () => {
  const { text } = readSource('bin/holdfast')
  // The second line is the shell's, and a directive with a comment behind it for JavaScript.
  expect(text).toMatch(/^#!\/bin\/sh\n':' \/\/; .*exec "\$n" "\$f" "\$@"\n/)
  expect(text).toContain('import(')
  expect(youngSyntax(text)).toEqual([])
  expect(youngSyntax(readSource('bin/compiled-code.cjs').text)).toEqual([])
  expect(youngSyntax(readSource('bin/whole-output.cjs').text)).toEqual([])
})

test('planted young syntax is found', () => {
  expect(youngSyntax(`#!/usr/bin/env node\nconst a = require('node:fs'); a?.b ?? c; class D { #e = 1 }`)).toEqual(
    expect.arrayContaining(['node:', 'ChainExpression', '??', 'PropertyDefinition']),
  )
})

test('the launcher asks for the Node that package.json asks for', () => {
  const { engines } = JSON.parse(readSource('package.json').text) as { engines: { node: string } }
  expect(readSource('bin/holdfast').text).toContain(`LEAST_NODE = '${engines.node.replace('>=', '')}.0'`)
})

test('the launcher finds itself by a link, by a relative one, and by a name without a folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-link-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(join(ROOT, 'bin/holdfast'), join(folder, 'straight'))
  symlinkSync(join(relative(realpathSync(folder), ROOT), 'bin/holdfast'), join(folder, 'crooked'))
  const said = (file: string) => spawnSync('sh', [file, '--version'], { cwd: folder, encoding: 'utf8' }).stdout
  const { version } = JSON.parse(readSource('package.json').text) as { version: string }
  for (const file of ['straight', './crooked', 'crooked']) expect(said(file), file).toBe(`${version}\n`)
})
