import { existsSync } from 'node:fs'
import { resolve, sep } from 'node:path'

import { KnownSecrets } from './known.ts'
import { keyPlace } from './key.ts'
import { Secrets } from './secrets.ts'

/** What home folders this process has open, and with which secrets. */
const open = new Map<string, Secrets>()

export const rememberHome = (home: string, secrets: Secrets): void => void open.set(resolve(home), secrets)

/**
 * What is sealed in a folder, and opened from it: by the home folder that it is in. One of another worker on this host is found by
 * its key. Undefined outside of any: there nothing is kept.
 */
export function secretsAt(folder: string): Secrets | undefined {
  const path = resolve(folder) + sep
  for (const [home, secrets] of open) if (path.startsWith(home + sep)) return secrets
  const [, home] = /^(.+)\/(?:work|mcp|spool)\//.exec(path) ?? []
  if (home === undefined) return undefined
  const place = keyPlace(home, undefined)
  if (!existsSync(place.path)) return undefined
  const known = open.values().next().value?.known ?? new KnownSecrets()
  const found = new Secrets(place, known)
  rememberHome(home, found)
  return found
}

/** A file that has something sealed in it says so: what others wrote is never opened, whatever it looks like. */
const SEALED = '~hf!'

export function sealedFor(folder: string, text: string, secrets = secretsAt(folder)): string {
  const sealed = secrets?.seal(text) ?? text
  return sealed === text ? text : `${SEALED}${sealed}`
}

export const isSealedText = (text: string): boolean => text.startsWith(SEALED)

export function openedFrom(folder: string, text: string): string {
  if (!isSealedText(text)) return text
  const sealed = text.slice(SEALED.length)
  return secretsAt(folder)?.open(sealed) ?? sealed
}
