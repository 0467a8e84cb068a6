import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { anchorsIn, deadLinks, linksIn, unreachable } from './links.ts'
import { documents, readSource, ROOT } from './tree.ts'

const pages = [...documents(), readSource('CHANGELOG.md')]

test('every link of the docs leads somewhere, and to a heading that is there', () => {
  const links = pages.flatMap(linksIn)
  console.log(`links: ${links.length} in ${pages.length} documents`)
  expect(links.length).toBeGreaterThan(200)
  expect(deadLinks(pages, (path) => existsSync(join(ROOT, path)))).toEqual([])
})

test('every page of the docs is found from the README', () => {
  expect(unreachable(pages, 'README.md')).toEqual([])
})

const page = (path: string, ...lines: string[]) => ({ path, text: lines.join('\n') })

test('a dead link, a missing heading and a page that nobody links to are found', () => {
  const first = page(
    'README.md',
    '# One & two',
    '[a](docs/a.md#what-it-is) [b](docs/none.md)',
    '[c](#one--two) [d](#two)',
  )
  const second = page(
    'docs/a.md',
    '## What `it` is?',
    '`[no](link.md)` [web](https://example.org/x.md)',
    '```sh',
    '[x](y)',
    '```',
  )
  const lost = page('docs/lost.md', '# Lost')
  const all = [first, second, lost]
  expect(deadLinks(all, (path) => all.some((each) => each.path === path))).toEqual([
    'README.md:2: there is no docs/none.md',
    'README.md:3: README.md has no heading #two',
  ])
  expect(unreachable(all, 'README.md')).toEqual(['docs/lost.md'])
})

test('headings that are the same are told apart', () => {
  expect([...anchorsIn(page('a.md', '# Stop', '## Stop', '### A [link](b.md), and more'))]).toEqual([
    'stop',
    'stop-1',
    'a-link-and-more',
  ])
})
