import type { HttpBindings } from '@hono/node-server'

import type { Credential } from './credentials.ts'

/** What a handler knows of its request: the sockets under it, and who asks. */
export interface Env {
  Bindings: HttpBindings
  Variables: { who: Credential }
}
