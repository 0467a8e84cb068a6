import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { extname } from 'node:path'

import type { Context } from 'hono'

/** The files of the page lie beside this one, in `src` as in `dist`; they are served as they are. */
const FOLDER = new URL('./page/', import.meta.url)

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

interface PageFile {
  readonly body: string
  readonly type: string
  readonly etag: string
}

/** Read once and looked up by name, so a request names no path on the disk. */
export function readPage(): ReadonlyMap<string, PageFile> {
  const files = readdirSync(FOLDER).flatMap((name): [string, PageFile][] => {
    const type = TYPES[extname(name)]
    if (type === undefined) return []
    const body = readFileSync(new URL(name, FOLDER), 'utf8')
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    return [[name === 'index.html' ? '/' : `/${name}`, { body, type, etag }]]
  })
  return new Map(files)
}

export function servePageFile(c: Context, { body, type, etag }: PageFile): Response {
  c.header('Cache-Control', 'no-cache')
  c.header('ETag', etag)
  if (c.req.header('if-none-match') === etag) return c.body(null, 304)
  return c.body(body, 200, { 'Content-Type': type })
}
