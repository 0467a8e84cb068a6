import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { HoldfastError } from '../base/errors.ts'
import { errorCode } from '../base/files.ts'

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MAC_BYTES = 12
const GOOD = /^[0-9a-f]{64}$/

// Loaded when something secret is met for the first time: it takes 7 ms, a fifth of the start of a supervisor.
const crypto = () => process.getBuiltinModule('node:crypto')

export interface KeyPlace {
  readonly path: string
  /** Somebody said where it is: one that is missing there is a mistake, not a reason to make another. */
  readonly named: boolean
}

/** In the home folder, or where HOLDFAST_SECRET_KEY_FILE says: several machines on one database share it. */
export function keyPlace(home: string, named: string | undefined): KeyPlace {
  return named === undefined || named === ''
    ? { path: join(home, 'secrets.key'), named: false }
    : { path: named, named: true }
}

interface Derived {
  readonly id: string
  readonly encrypts: Buffer
  readonly signs: Buffer
}

/**
 * What secret-shaped values are kept under, and what references are signed with. The same text always becomes the same sealed
 * text, so that what is looked up by such a text is found: the nonce is drawn from the text itself, under a key of its own.
 */
export class Key {
  readonly #place: KeyPlace
  #derived: Derived | undefined

  constructor(place: KeyPlace) {
    this.#place = place
  }

  get place(): KeyPlace {
    return this.#place
  }

  /** Tells keys apart without saying anything about them. */
  get id(): string {
    return this.#get().id
  }

  /** The one that is there, if there is one; for whoever only reads. */
  get idIfThere(): string | undefined {
    this.#derived ??= derive(readKey(this.#place.path))
    return this.#derived?.id
  }

  encrypt(text: Uint8Array): string {
    const { encrypts, signs } = this.#get()
    const { createCipheriv, createHmac } = crypto()
    const nonce = createHmac('sha256', signs).update('nonce\0').update(text).digest().subarray(0, NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', encrypts, nonce)
    return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64url')
  }

  /** Undefined: it was not made with this key, or somebody changed it. */
  decrypt(sealed: string): Buffer | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined
    const decipher = crypto().createDecipheriv('aes-256-gcm', this.#get().encrypts, bytes.subarray(0, NONCE_BYTES))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    } catch {
      return undefined
    }
  }

  sign(text: string): string {
    const mac = crypto().createHmac('sha256', this.#get().signs).update(`reference\0${text}`).digest()
    return mac.subarray(0, MAC_BYTES).toString('base64url')
  }

  isSigned(text: string, mac: string): boolean {
    const [own, given] = [Buffer.from(this.sign(text)), Buffer.from(mac)]
    return own.length === given.length && crypto().timingSafeEqual(own, given)
  }

  #get(): Derived {
    this.#derived ??= derive(readKey(this.#place.path) ?? makeKey(this.#place))
    return this.#derived as Derived
  }
}

function derive(hex: string | undefined): Derived | undefined {
  if (hex === undefined) return undefined
  const { hkdfSync, createHash } = crypto()
  const key = Buffer.from(hex, 'hex')
  const own = (use: string) => Buffer.from(hkdfSync('sha256', key, '', `holdfast ${use}`, KEY_BYTES))
  return {
    id: createHash('sha256').update(own('id')).digest('hex').slice(0, 8),
    encrypts: own('encrypt'),
    signs: own('sign'),
  }
}

function readKey(path: string): string | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw new HoldfastError('secrets/key-unreadable', `the key of secrets in ${path} cannot be read`, {
      remedy: 'make it readable for this user (chmod 600)',
      cause: error,
    })
  }
  if (GOOD.test(text)) return text
  throw new HoldfastError('secrets/bad-key', `${path} does not hold a key of secrets`, {
    remedy: 'restore it from where you keep it; without it, values that were sealed under it cannot be read',
  })
}

/** Created complete and on disk, or not at all; of several that make it at once one wins, and all use the winner's. */
function makeKey({ path, named }: KeyPlace): string {
  if (named) {
    throw new HoldfastError('secrets/no-key', `HOLDFAST_SECRET_KEY_FILE names ${path}, which is not there`, {
      remedy: 'copy the key there from the machine that has it, with mode 0600',
    })
  }
  // Not by the process number alone: in a container it is the same at every start, and one that was killed here left its file.
  const temporary = `${path}.${crypto().randomBytes(6).toString('hex')}.tmp`
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeSync(file, `${crypto().randomBytes(KEY_BYTES).toString('hex')}\n`)
    fsyncSync(file)
    linkSync(temporary, path)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  } finally {
    closeSync(file)
    unlinkSync(temporary)
  }
  syncFolder(dirname(path))
  return readKey(path) as string
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
