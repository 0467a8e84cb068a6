import { newClient, within } from './client.ts'
import type { Opening } from './client.ts'
import { Connection } from './connection.ts'
import type { Call, Ending } from './connection.ts'
import type { HttpServer } from './definition.ts'
import { httpTransport } from './http-transport.ts'
import { withVariables } from './variables.ts'

/** Greets a server at an address. What it does with a call that was cancelled is out of our reach. */
export async function openHttp(server: HttpServer, opening: Opening): Promise<Connection> {
  const headers = withVariables(`${opening.where}.headers`, server.headers, opening.place.env)
  // A server that was started anew knows nothing of an older session: whoever comes next greets it again.
  const transport = await httpTransport(server.url, headers, () => (wire.usable = false))
  const client = await newClient(opening.legacy)
  const over = Promise.withResolvers<Ending>()
  const wire = {
    usable: true,
    ended: over.promise,
    async end(why: string) {
      wire.usable = false
      over.resolve({ why, told: true })
      await client.close().catch(() => {})
    },
    async stopCall(_call: Call, _answer: unknown, giveUp: (why: string) => void) {
      giveUp('cancelled')
      return undefined
    },
  }
  try {
    await within(opening, client.connect(transport), over.promise)
  } catch (error) {
    await wire.end('it was not greeted')
    throw error
  }
  // An older server has refused the newer greeting on the way here.
  wire.usable = true
  return new Connection(client, wire, opening.clock)
}
