import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import pg from 'pg'

import type { Engine, Place } from '../bench.ts'
import type { Home } from '../product.ts'

let databases = 0

/** An empty folder, and on PostgreSQL an empty database: what was recorded names its schema. Both are gone afterwards. */
export async function withHome<T>(
  place: Pick<Place, 'folder' | 'postgres'>,
  engine: Engine,
  work: (home: Home) => Promise<T>,
): Promise<T> {
  const home = mkdtempSync(join(place.folder, 'home-'))
  try {
    if (engine === 'sqlite') return await work({ engine, home, store: undefined })
    return await withDatabase(await place.postgres(), (store) => work({ engine, home, store }))
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

async function withDatabase<T>(server: string, work: (url: string) => Promise<T>): Promise<T> {
  const name = `limits_${process.pid}_${(databases += 1)}`
  const admin = new pg.Client(server)
  await admin.connect()
  try {
    await admin.query(`create database ${name}`)
    await admin.query('checkpoint')
    const url = new URL(server)
    url.pathname = name
    return await work(url.href)
  } finally {
    await admin.query(`drop database if exists ${name} with (force)`)
    await admin.end()
  }
}
