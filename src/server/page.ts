import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import type { Context, Hono } from 'hono'

import { PACKAGE_FOLDER } from '../base/place.ts'
import type { Env } from './env.ts'

/** The dashboard as it was built: in a clone and in the package it lies in the same place. */
const FOLDER = pathToFileURL(join(PACKAGE_FOLDER, 'dashboard', 'dist', '/'))

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
}

interface PageFile {
  readonly body: Buffer<ArrayBuffer>
  readonly type: string
  readonly etag: string
  /** Its name has a digest of its content in it, so it is never another. */
  readonly forever: boolean
}

/** Read once and looked up by name, so a request names no path on the disk. Without a build there is the API alone. */
export function readPage(folder = FOLDER): ReadonlyMap<string, PageFile> {
  if (!existsSync(new URL('index.html', folder))) return new Map()
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'))
  return new Map(
    names.flatMap((name): [string, PageFile][] => {
      const type = TYPES[extname(name)]
      if (type === undefined) return []
      const body = readFileSync(fileURLToPath(new URL(name, folder)))
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
      return [[name === 'index.html' ? '/' : `/${name}`, { body, type, etag, forever: name.startsWith('assets/') }]]
    }),
  )
}

const NOT_BUILT =
  'The dashboard has not been built. In a clone of Holdfast, `npm run dashboard` builds it; then start the daemon again. ' +
  'The API and the command line work without it.'

/** Files under their names; whatever else a person opens is a place in the page, which finds its own way. */
export function servePage(
  app: Hono<Env>,
  files: ReadonlyMap<string, PageFile>,
  warn: (text: string) => void = () => {},
): void {
  for (const [path, file] of files) app.get(path, (c) => servePageFile(c, file))
  const index = files.get('/')
  if (index === undefined) warn(NOT_BUILT)
  const place = (c: Context) => (index === undefined ? c.text(NOT_BUILT, 503) : servePageFile(c, index))
  app.get('*', (c, next) => (isPlace(c) ? Promise.resolve(place(c)) : next()))
}

/** Names of threads may have dots in them, so an address that looks like a file can be a place too. */
const isPlace = (c: Context): boolean =>
  c.req.header('accept')?.includes('text/html') === true && !/^\/(api|assets|metrics)(\/|$)/.test(c.req.path)

function servePageFile(c: Context, { body, type, etag, forever }: PageFile): Response {
  c.header('Cache-Control', forever ? 'public, max-age=31536000, immutable' : 'no-cache')
  c.header('ETag', etag)
  if (c.req.header('if-none-match') === etag) return c.body(null, 304)
  return c.body(body, 200, { 'Content-Type': type })
}
