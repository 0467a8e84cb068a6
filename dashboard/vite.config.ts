import tailwind from '@tailwindcss/vite'
import { defineConfig } from 'vite'

/** Served from the root by the daemon, under a policy that allows our own files and nothing inline. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [tailwind()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    // A data: address would be refused by the policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // For work on the page: `npm run dev -w dashboard` beside a daemon.
  server: { proxy: { '/api': 'http://127.0.0.1:4780' } },
})
