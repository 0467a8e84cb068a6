/**
 * What secrets look like. Each shape is known by a few literal characters (`at`), which a scan finds quickly, and is then
 * read by an expression that begins right there. Every repetition has a bound or cannot meet its own beginning again, so that a
 * hostile text takes no longer than another. A plain digest, UUID or id of ours is nothing secret and matches nothing here.
 */
export interface Shape {
  /** What it is called where it is hidden. */
  readonly name: string
  /** Literal beginnings, three characters or more. */
  readonly at: readonly string[]
  /** Sticky. With a group `before`, what it holds is context and stays readable. */
  readonly reads: RegExp
  /** Must not stand in the middle of a longer word. */
  readonly alone?: true
}

const word = (name: string, at: readonly string[], reads: RegExp): Shape => ({ name, at, reads, alone: true })

const KEYS: readonly Shape[] = [
  word('anthropic key', ['sk-ant-'], /sk-ant-[\w-]{16,400}/y),
  // A digit somewhere: `sk-` also begins words that are joined by hyphens.
  word('api key', ['sk-'], /sk-(?!ant-)(?=[\w-]{0,48}?\d)[\w-]{20,400}/y),
  word('github token', ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'], /gh[pousr]_[A-Za-z0-9]{30,255}/y),
  word('github token', ['github_pat_'], /github_pat_\w{22,255}/y),
  word(
    'gitlab token',
    ['glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-', 'glft-', 'glsoat-'],
    /gl[a-z]{2,4}-[\w-]{20,300}/y,
  ),
  word(
    'slack token',
    ['xoxa-', 'xoxb-', 'xoxe-', 'xoxo-', 'xoxp-', 'xoxr-', 'xoxs-', 'xapp-'],
    /x(?:ox[a-z]|app)-[\w-]{10,300}/y,
  ),
  word('aws key id', ['AKIA', 'ASIA', 'ABIA', 'ACCA'], /A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])/y),
  word('google key', ['AIza'], /AIza[\w-]{35}/y),
  word('google token', ['ya29.', 'GOCSPX-'], /(?:ya29\.|GOCSPX-)[\w.-]{20,600}/y),
  word('stripe key', ['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_'], /[sr]k_(?:live|test)_[A-Za-z0-9]{16,300}/y),
  word('webhook secret', ['whsec_'], /whsec_[A-Za-z0-9+/=]{20,300}/y),
  word('npm token', ['npm_'], /npm_[A-Za-z0-9]{36,100}/y),
  word('pypi token', ['pypi-A'], /pypi-A[\w-]{40,400}/y),
  word('huggingface token', ['hf_'], /hf_[A-Za-z0-9]{30,100}/y),
  word('sendgrid key', ['SG.'], /SG\.[\w-]{16,40}\.[\w-]{30,60}/y),
  word('vault token', ['hvs.', 'hvb.'], /hv[sb]\.[\w-]{24,300}/y),
  word('digitalocean token', ['dop_v1_', 'doo_v1_', 'dor_v1_'], /do[opr]_v1_[a-f0-9]{40,100}/y),
  word('docker token', ['dckr_pat_'], /dckr_pat_[\w-]{20,100}/y),
  word('shopify token', ['shpat_', 'shpca_', 'shppa_', 'shpss_'], /shp[a-z]{2}_[a-fA-F0-9]{32}/y),
  word('api key', ['gsk_', 'xai-', 'pplx-', 'lin_api_'], /(?:gsk_|xai-|pplx-|lin_api_)[A-Za-z0-9]{24,300}/y),
  word('atlassian token', ['ATATT3'], /ATATT3[\w=-]{30,400}/y),
  word('age key', ['AGE-SECRET-KEY-1'], /AGE-SECRET-KEY-1[A-Z0-9]{40,80}/y),
  word('web token', ['eyJ'], /eyJ[\w-]{8,4000}\.eyJ[\w-]{8,8000}\.[\w-]{10,1000}/y),
]

/** A line end as it is, or escaped, once or in JSON that is itself inside of JSON. */
const END = String.raw`(?:\s|\\+[nrt])`

const PRIVATE_KEY: Shape = {
  name: 'private key',
  at: ['-----BEGIN '],
  reads: new RegExp(
    String.raw`-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----${END}(?:[\w+/=:.,;()]|${END}|-(?!----)){16,20000}(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?`,
    'y',
  ),
}

/** Between a name and its value: quotes (escaped ones too), a colon or an equals sign, quotes. */
const IS = String.raw`[\\"'\`\]]{0,9}[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}[\\"'\`]{0,9}`
/** Letters and a digit, and nothing that an expression of a program has: `password = read(file)` is no password. */
const VALUE = String.raw`(?=[^\s"'\`\\,;&<>(){}\[\]$|]{0,64}?\d)(?=[^\s"'\`\\,;&<>(){}\[\]$|]{0,64}?[A-Za-z])[^\s"'\`\\,;&<>(){}\[\]$|]{8,255}(?![(\[{])`

const assigned = (name: string, at: readonly string[], rest: string): Shape => ({
  name,
  at,
  reads: new RegExp(`(?<before>(?:${at.join('|')})${rest}${IS})${VALUE}`, 'y'),
})

const ASSIGNED: readonly Shape[] = [
  assigned('password', ['assword', 'ASSWORD'], ''),
  assigned('password', ['asswd', 'ASSWD', 'assphrase', 'ASSPHRASE', 'assPhrase'], ''),
  assigned(
    'secret',
    ['ecret', 'ECRET'],
    '(?:[_-]?(?:access[_-]?)?(?:key|token|value)|[_-]?(?:ACCESS[_-]?)?(?:KEY|TOKEN|VALUE)|(?:Access)?Key)?',
  ),
  assigned('api key', ['pi_key', 'piKey', 'pikey', 'pi-key', 'PI_KEY', 'PIKEY', 'Pi-Key', 'PI-KEY'], ''),
  assigned(
    'access key',
    ['ccess_key', 'ccessKey', 'CCESS_KEY', 'rivate_key', 'rivateKey', 'RIVATE_KEY', 'ccountKey'],
    '',
  ),
  assigned(
    'token',
    ['ccess_token', 'ccessToken', 'efresh_token', 'efreshToken', 'uth_token', 'uthToken', '_TOKEN'],
    '',
  ),
]

const CREDENTIALS = String.raw`[A-Za-z0-9._~+/=-]`

const HEADERS: readonly Shape[] = [
  {
    name: 'bearer token',
    at: ['earer ', 'EARER '],
    reads: new RegExp(`(?<before>(?:earer|EARER)[ ]{1,4})(?=${CREDENTIALS}{0,4000}?\\d)${CREDENTIALS}{16,4000}`, 'y'),
  },
  {
    name: 'credentials',
    at: ['uthorization', 'UTHORIZATION'],
    reads: new RegExp(`(?<before>(?:uthorization|UTHORIZATION)${IS}[A-Za-z]{3,10}[ ]{1,4})${CREDENTIALS}{8,4000}`, 'y'),
  },
]

/** The password in an address: `postgres://user:password@host`. Stars were hidden by somebody before us, and some words stand for any. */
const IN_ADDRESS: Shape = {
  name: 'password',
  at: ['://'],
  reads:
    /(?<before>:\/\/[^\s/:@"'`\\<>]{0,100}:)(?!(?:\*+|PASSWORD|password|PASS|pass|secret|xxx+)@|\[secret )[^\s/@"'`\\<>]{3,200}(?=@)/y,
}

const SLACK_HOOK: Shape = {
  name: 'webhook address',
  at: ['hooks.slack.com/'],
  reads: /(?<before>hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/-]{20,200}/y,
}

export const SHAPES: readonly Shape[] = [...KEYS, PRIVATE_KEY, ...ASSIGNED, ...HEADERS, IN_ADDRESS, SLACK_HOOK]
