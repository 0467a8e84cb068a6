import { expect, test } from 'vitest'

import { judge } from './policy.ts'
import type { PolicyRule } from './policy.ts'
import type { Predicate } from './predicate.ts'

type Condition = { [Kind in Exclude<keyof Every, 'argument'>]: Pick<Every, Kind> }[Exclude<keyof Every, 'argument'>]
interface Every {
  readonly equals: unknown
  readonly oneOf: readonly unknown[]
  readonly prefix: string
  readonly path: string
  readonly words: readonly string[]
}

/** What a rule with this condition makes of a call that another rule allows, or that none does. */
function decided(condition: Condition, input: unknown, decision: PolicyRule['decision'], argument = 'it') {
  const where = [{ argument, ...condition } as Predicate]
  const rest: PolicyRule[] = decision === 'allow' ? [] : [{ tool: 'write', decision: 'allow' }]
  const rule: PolicyRule = { tool: 'write', where, decision }
  return judge([...rest, rule], { tool: 'write', effect: 'write', agent: 'clerk', input }).kind
}

/** Whether it holds where it allows, denies and asks. */
const readings = (condition: Condition, input: unknown, argument?: string) => ({
  allow: decided(condition, input, 'allow', argument) === 'allow',
  deny: decided(condition, input, 'deny', argument) === 'deny',
  ask: decided(condition, input, 'ask', argument) === 'ask',
})

const ALWAYS = { allow: true, deny: true, ask: true }
const WIDELY = { allow: false, deny: true, ask: true }
const NEVER = { allow: false, deny: false, ask: false }

test.each<[string, string, typeof NEVER]>([
  ['secrets/**', 'secrets/key', ALWAYS],
  ['secrets/**', './src/../secrets/a/b', ALWAYS],
  ['./secrets/**', 'secrets/key', ALWAYS],
  ['secrets/**', '/srv/project/secrets/key', WIDELY],
  ['secrets/**', '/srv/.work/project/secrets/key', WIDELY],
  ['secrets/**', 'secrets/.env', WIDELY],
  ['secrets/**', 'secrets/.a/.b', WIDELY],
  ['secrets/**', 'secrets/..a', WIDELY],
  ['secrets/**', '../project/secrets/key', WIDELY],
  ['secrets/**', '../../secrets/.env', WIDELY],
  ['secrets/**', '~/project/secrets/key', WIDELY],
  ['secrets/**', 'file:///srv/secrets/key', WIDELY],
  ['secrets/**', 'C:\\project\\secrets\\key', WIDELY],
  ['secrets/**', 'src\\..\\secrets\\key', WIDELY],
  ['secrets/**', 'Secrets/KEY', WIDELY],
  ['SECRETS/**', 'secrets/key', WIDELY],
  ['secrets/**', ' secrets/key', WIDELY],
  ['secrets/**', 'secrets', WIDELY],
  ['secrets/**', '/srv/secrets/', WIDELY],
  ['secrets/', 'secrets/key', WIDELY],
  ['secrets/**', 'src/secrets/key', WIDELY],
  ['caf\u00e9/**', 'cafe\u0301/menu', WIDELY],
  ['secrets/**', 'secretsx/key', NEVER],
  ['secrets/**', 'my-secrets/key', NEVER],
  ['secrets/**', 'src/secrets.ts', NEVER],
  ['secrets/**', 'secrets/../public', NEVER],
  ['secrets/**', '.', NEVER],
  ['**/*.pem', 'a/b.pem', ALWAYS],
  ['**/*.pem', '/etc/ssl/.private/.b.PEM', WIDELY],
  ['**/*.pem', 'a/b.pem.txt', NEVER],
  ['*.{pem,key}', 'a/b.key', WIDELY],
  ['.env', '.env', ALWAYS],
  ['.env', '/srv/project/.env', WIDELY],
  ['.env', 'env', NEVER],
  ['.env', '.env.example', NEVER],
  ['.env*', 'a/.env.local', WIDELY],
  ['{.env,.npmrc}', 'a/.npmrc', WIDELY],
  ['*', '.env', WIDELY],
  ['.git/**', '.git/config', ALWAYS],
  ['.git/**', '/srv/project/.git/hooks/.x', WIDELY],
  ['.git/**', '.GIT/config', WIDELY],
  ['.git/**', '.github/workflows/x', NEVER],
  ['/etc/**', '/etc/passwd', ALWAYS],
  ['/etc/**', '../../../etc/passwd', WIDELY],
  ['/etc/**', '/proc/self/root/etc/passwd', WIDELY],
  ['/etc/**', 'src/a.ts', NEVER],
  ['/etc/*.conf', 'app.conf', NEVER],
  ['/srv/project/secrets/**', 'secrets/key', WIDELY],
  ['/srv/project/secrets/**', 'src/key', NEVER],
  ['C:/project/secrets/**', 'secrets/key', WIDELY],
  ['~/.ssh/**', '/srv/.ssh/id_ed25519', WIDELY],
  ['~/.ssh/**', 'src/a.ts', NEVER],
  ['**', '..', WIDELY],
])('the glob %s and the path %s', (path, it, expected) => {
  expect(readings({ path }, { it })).toEqual(expected)
})

test.each<[string, Condition, unknown, typeof NEVER]>([
  ['a path in a list', { path: 'secrets/**' }, ['src/a', 'secrets/key'], WIDELY],
  ['a path in an object', { path: 'secrets/**' }, { from: 'a', to: ['secrets/key'] }, WIDELY],
  ['a number is no such path', { path: 'secrets/**' }, 7, NEVER],
  ['nor is null', { path: 'secrets/**' }, null, NEVER],
  ['a value', { equals: 'prod' }, 'prod', ALWAYS],
  ['a value in other letters', { equals: 'boss@example.org' }, 'Boss@Example.org ', WIDELY],
  ['a number as a text', { equals: 5 }, '5', WIDELY],
  ['a text as a number', { oneOf: ['5', '6'] }, 6, WIDELY],
  ['yes as a text', { equals: true }, 'true', WIDELY],
  ['a value in a list', { equals: 'prod' }, ['test', 'prod'], WIDELY],
  ['one of several in a list', { oneOf: ['ann', 'bob'] }, ['eve', 'Bob'], WIDELY],
  ['a list', { equals: ['a', 'b'] }, ['a', 'b'], ALWAYS],
  ['a list in other letters', { equals: ['a', 'b'] }, ['A', 'b'], WIDELY],
  ['a longer list', { equals: ['a', 'b'] }, ['a', 'b', 'c'], NEVER],
  ['an object, in any order', { equals: { a: 1, b: 2 } }, { b: 2, a: 1 }, ALWAYS],
  ['an object with more in it', { equals: { a: 1 } }, { a: 1, b: 2 }, NEVER],
  ['another value', { equals: 'prod' }, 'production', NEVER],
  ['a beginning', { prefix: 'https://example.org' }, 'https://example.org/a', ALWAYS],
  ['a beginning in other letters', { prefix: 'https://example.org' }, 'HTTPS://Example.org/a', WIDELY],
  ['a beginning of one in a list', { prefix: '--force' }, ['push', '--force-with-lease'], WIDELY],
  ['a beginning of a number', { prefix: '00' }, 7, NEVER],
  ['a beginning that ends with a blank', { prefix: 'rm ' }, 'rmdir a', NEVER],
  ['no beginning', { prefix: 'b' }, 'ab', NEVER],
  ['words', { words: ['git', 'push'] }, ['git', 'push', '-f'], ALWAYS],
  ['words of a text', { words: ['git', 'push'] }, ' git  push -f', WIDELY],
  ['words in other letters', { words: ['git', 'push'] }, ['GIT', 'push'], WIDELY],
  ['a program by its path', { words: ['git', 'push'] }, ['/usr/bin/git', 'push'], WIDELY],
  ['words of a list of lists', { words: ['git', 'push'] }, [['ls'], ['git', 'push']], WIDELY],
  ['words that stand elsewhere', { words: ['push'] }, ['commit', '-m', 'push it'], NEVER],
  ['fewer words', { words: ['git', 'push'] }, ['git'], NEVER],
])('%s', (_, condition, it, expected) => {
  expect(readings(condition, { it })).toEqual(expected)
})

test.each<[string, unknown, typeof NEVER]>([
  ['in a list of objects', { edits: [{ path: 'a' }, { path: 'secrets/key' }] }, WIDELY],
  ['in an object', { edits: { path: 'secrets/key' } }, ALWAYS],
  ['missing', { edits: [] }, NEVER],
  ['of what is no object', 'secrets/key', NEVER],
])('an argument by its path, %s', (_, input, expected) => {
  expect(readings({ path: 'secrets/**' }, input, 'edits.path')).toEqual(expected)
})

test.each<[string, Condition]>([
  ['path', { path: '**' }],
  ['equals', { equals: 'undefined' }],
  ['prefix', { prefix: '' }],
])('an argument that is not there is under no condition: %s', (_, condition) => {
  expect(readings(condition, {})).toEqual(NEVER)
  expect(readings(condition, { it: undefined })).toEqual(NEVER)
  expect(readings(condition, undefined)).toEqual(NEVER)
})

test('what is very deep or very long is judged all the same', () => {
  let deep: unknown = 'secrets/key'
  for (let depth = 0; depth < 20_000; depth += 1) deep = [deep]
  expect(decided({ path: 'secrets/**' }, { it: deep }, 'deny')).toBe('deny')
  expect(decided({ path: 'secrets/**' }, { it: `${'a/'.repeat(20_000)}secrets/key` }, 'deny')).toBe('deny')
  expect(decided({ equals: 'x' }, { it: Array.from({ length: 200_000 }, () => 'y') }, 'deny')).toBe('allow')
})

test('what is longer than any path may be anything where it denies or asks, and is said at once', () => {
  expect(readings({ path: 'secrets/**/x/**' }, { it: 'a/'.repeat(200_000) })).toEqual(WIDELY)
})
