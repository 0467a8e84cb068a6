/**
 * Of the migrations on SQLite, in their order. A database with exactly these is opened without loading the migrations, or
 * what computes their checksums: that would take as long as everything else that opening it does. A list that has fallen
 * behind costs that time and nothing more; test/migration holds it to the migrations.
 */
export const SQLITE_CHECKSUMS: readonly string[] = [
  'b984069763d1fb86c1d356d36146b24e041aadbf5721490ce2a32d72b0ed8e18',
  '131f80751ad095553035fe8429771dc8a263577b0ebb478a670798a470688179',
  '377edb09bc4e40d4f3cd3af6757f1eca86d9133792cca586c2431ae8d55ccdad',
  '93701e105ef6dc643a4a3db2aa5d0211360fbe23f16aeef23c540c9473289395',
  '41a22fcfd8eb8d52649a84621ff12e60840d2c0ee8d51904f180edbb00d65d2a',
  'd2de91ffa6b0cc2f6bd002c0e572f3024226025ec149c6a5ed4f336fe1decce8',
  '0199ef2dbe7c19af1bb444bf7863b939813aedf46c6f6f2f2917070cc3ec2787',
  'c69ff2ecc272eb81031a74df78cf186cd2c3aacfb3ef4f5f10c513c64459a83c',
  '37e95e4d2f60874f70c0ded6733a0b7e080f5057834cbf35050c62be4154987a',
  '2b9ea3946e5d5815b70b494da36e98d4c3d719941666befa949990a4e42a5201',
  '7d066d3d69c47bfbd3edc3f38b63bdbce8b4455cb35d2a8083f5e7f31a5ad6fc',
  '9c61af00c81faefcf96b489f7acfa63a3ee042ce897746c82d49727ba97f0fd3',
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '72d61f264074eb08cb6eee07ead179573d87c1060eacbdd88e90a3c45291fc40',
  'c012527a86b881c34d3880df01b8f5eea996dc1e9a8bc86c9faaaf02b1360913',
  'fd4ed6bea3852ce62b95dc1d2b6fe67366ebce703d1d644445c0f0f83ea50940',
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '75d9982d85c1c4444fc197e86dcdea117f7fb3e04bd865b973a1193a75b23f94',
  '2501d2cdf1986d65672f437d226a0bf8c6586eb14ad336976a6f1601a2bdb324',
  '0c38edef36d4711c3252ad959cb0895f31d88ea8d3abdd3394544e9d216ec08d',
]
