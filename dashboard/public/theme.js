// Before anything is painted, so that a page in the dark does not flash: the choice that was made here, if there was one.
try {
  const chosen = localStorage.getItem('theme')
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen
} catch {
  // No storage: the system's choice holds.
}
