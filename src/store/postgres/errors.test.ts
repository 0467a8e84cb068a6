import { expect, test } from 'vitest'

import { isConnectionLost, isRefusal } from './errors.ts'

const coded = (code: string, message = 'on purpose') => Object.assign(new Error(message), { code })

test.each(['22012', '40001', '40P01', '55P03', '23505', '23514', '25006', '42501'])(
  'a server that says %s has refused what it was asked',
  (code) => expect(isRefusal(coded(code))).toBe(true),
)

test.each(['08006', '53100', '57014', '57P01', '57P05', '58030', 'XX000', '25P03', '40003'])(
  '%s may be the last word of a server that has done it',
  (code) => expect(isRefusal(coded(code))).toBe(false),
)

test.each([
  ['a code of the network', coded('ECONNRESET')],
  ['a code of TLS', coded('ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC')],
  ['no code', new Error('anything')],
])('an error with %s is no refusal', (_, error) => expect(isRefusal(error)).toBe(false))

test.each(['ECONNRESET', 'ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC', '57P05'])('%s is a connection that is gone', (code) =>
  expect(isConnectionLost(coded(code))).toBe(true),
)
