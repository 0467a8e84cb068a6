/** Keeps the first and the last bytes of a stream in constant memory. */
export class OutputEnds {
  readonly #head: Buffer
  readonly #tail: Buffer
  #total = 0

  constructor({ headBytes, tailBytes }: { readonly headBytes: number; readonly tailBytes: number }) {
    this.#head = Buffer.alloc(headBytes)
    this.#tail = Buffer.alloc(tailBytes)
  }

  get totalBytes(): number {
    return this.#total
  }

  keep(chunk: Uint8Array): void {
    const toHead = chunk.subarray(0, Math.max(this.#head.length - this.#total, 0))
    if (toHead.length > 0) this.#head.set(toHead, this.#total)
    this.#total += toHead.length
    if (chunk.length > toHead.length) this.#keepTail(chunk.subarray(toHead.length))
  }

  /** Texts that together say everything, or leave out whole characters in the middle. */
  texts(): { head: string; tail: string; truncated: boolean } {
    const head = this.#head.subarray(0, Math.min(this.#total, this.#head.length))
    const tail = this.#orderedTail()
    const truncated = this.#total > head.length + tail.length
    const cut = tail.length === 0 && !truncated ? head.length : wholeCharacters(head)
    const rest = truncated ? tail.subarray(leadingFragment(tail)) : Buffer.concat([head.subarray(cut), tail])
    return { head: head.toString('utf8', 0, cut), tail: rest.toString('utf8'), truncated }
  }

  // The tail is a ring: byte number n after the head lies at n modulo its size.
  #keepTail(chunk: Uint8Array): void {
    const size = this.#tail.length
    const last = chunk.subarray(Math.max(chunk.length - size, 0))
    const skipped = chunk.length - last.length
    const start = size === 0 ? 0 : (this.#total - this.#head.length + skipped) % size
    const upToEdge = last.subarray(0, size - start)
    this.#tail.set(upToEdge, start)
    this.#tail.set(last.subarray(upToEdge.length), 0)
    this.#total += chunk.length
  }

  #orderedTail(): Buffer {
    const past = Math.max(this.#total - this.#head.length, 0)
    const size = this.#tail.length
    if (past <= size) return this.#tail.subarray(0, past)
    return Buffer.concat([this.#tail.subarray(past % size), this.#tail.subarray(0, past % size)])
  }
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80

/** The length of `bytes` without a character that begins at its end but is not complete. */
function wholeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1
  while (start > bytes.length - 4 && isContinuation(bytes[start])) start -= 1
  const lead = bytes[start] ?? 0
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
  return length > bytes.length - start ? start : bytes.length
}

function leadingFragment(bytes: Buffer): number {
  let length = 0
  while (length < 3 && isContinuation(bytes[length])) length += 1
  return length
}
