import type { z } from 'zod'

import { API } from '../../src/api/endpoint.ts'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { ENDPOINTS, ENDPOINT_NAMES } from '../../src/api/endpoints.ts'
import type { EndpointName } from '../../src/api/endpoints.ts'
import { ROUTES } from '../../src/api/routes.ts'
import { page, table } from './markdown.ts'

export function httpPage(): string {
  return page(
    'HTTP routes',
    `All of them are below \`${API}\`. \`scope\` is what a token needs; \`own\` routes are open to a token for one thread too, for that thread. What is asked for is in the query of a GET and in the JSON body\nof a POST; a \`?\` behind a name: it may be left out. Types, answers and limits are in the OpenAPI document that a daemon serves at \`${API}/openapi.json\`. How pages, errors and\nthe event stream work: [../http.md](../http.md).`,
    table(['request', 'scope', 'what'], ENDPOINT_NAMES.map(rowOf)),
  )
}

function rowOf(name: EndpointName): string[] {
  const { method, path, scope, own, summary }: Endpoint = ENDPOINTS[name]
  const place = path.replaceAll(/:(\w+)/g, (_, part: string) => part.toUpperCase())
  const asked = Object.entries(ROUTES[name].ask.shape as Readonly<Record<string, z.ZodType>>).map(
    ([field, schema]) => `${field}${schema.safeParse(undefined).success ? '?' : ''}`,
  )
  const shown = method === 'GET' ? asked.map((field) => field.replace('?', '')).join('&') : asked.join(', ')
  const form = method === 'GET' ? `\`?${shown}\`` : `\`{ ${shown} }\``
  return [
    `\`${method} ${place}\`${asked.length === 0 ? '' : ` ${form}`}`,
    own === true ? `${scope}, own` : scope,
    summary,
  ]
}
