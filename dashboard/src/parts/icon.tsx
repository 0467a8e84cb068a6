/** Lines of 20 × 20. */
const PATHS = {
  home: 'M3.500 9.200 10 3.800l6.500 5.400M5.300 8.200v8h9.400v-8M8.300 16.200v-4.400h3.400v4.400',
  hand: 'M4 10.500l3.700 3.700L16 6',
  question: 'M7 7.500a3 3 0 1 1 4.400 2.700c-.9.500-1.400 1.100-1.400 2.100m0 3v.3',
  thread: 'M4 5.200h12v8.300H9.300L5.800 16.300v-2.800H4z',
  run: 'M6.500 4.500v11l9-5.500z',
  branch:
    'M6.500 6.800v6.400M6.500 4a1.400 1.400 0 1 1 0 2.800 1.400 1.400 0 0 1 0-2.800zM6.500 13.200a1.400 1.400 0 1 1 0 2.800 1.400 1.400 0 0 1 0-2.800zM13.500 5a1.400 1.400 0 1 1 0 2.800 1.400 1.400 0 0 1 0-2.800zM13.500 7.800c0 3.200-7 1.800-7 5.400',
  inbox:
    'M3.800 11.200h3.700l1 1.800h3l1-1.800h3.700M3.800 11.200v4.500h12.400v-4.500M3.800 11.200l2-6.700h8.400l2 6.700',
  calendar: 'M4 5.500h12v10.700H4zM4 8.800h12M7.200 3.600v3M12.800 3.600v3',
  gauge: 'M4.300 14.500a6.600 6.600 0 1 1 11.400 0M10 11.300l2.800-3.600',
  list: 'M4 5.500h.1M4 10h.1M4 14.500h.1M7.300 5.500H16M7.300 10H16M7.300 14.500H16',
  gear: 'M4 6.200h6.500m3.200 0H16M4 13.800h2.300m3.200 0H16M12.100 4.600a1.600 1.600 0 1 1 0 3.200 1.600 1.600 0 0 1 0-3.200zM7.900 12.200a1.600 1.600 0 1 1 0 3.200 1.600 1.600 0 0 1 0-3.200z',
  more: 'M5 10h.1M10 10h.1M15 10h.1',
  back: 'M11.500 5l-5 5 5 5',
} as const

export type IconName = keyof typeof PATHS

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg
    class="size-5 shrink-0"
    viewBox="0 0 20 20"
    fill="none"
    stroke="currentColor"
    stroke-width={name === 'more' ? 2.4 : 1.5}
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d={PATHS[name]} />
  </svg>
)
