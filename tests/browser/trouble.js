// What is wrong with a notebook as a page: one line per finding. Called by test_rendering.py inside JupyterLab.
() => {
  const found = []
  const tell = (node, what) => {
    const cell = node.closest('.jp-Cell')
    found.push(`cell ${cell.getAttribute('data-windowed-list-index')}: ${what}`)
  }
  const anchors = new Set()
  for (const heading of document.querySelectorAll('.jp-Notebook :is(h1, h2, h3, h4, h5, h6)'))
    anchors.add(heading.id || heading.getAttribute('data-jupyter-id'))

  for (const page of document.querySelectorAll('.jp-Notebook .jp-Cell .jp-RenderedMarkdown')) {
    const texts = document.createTreeWalker(page, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
      const text = texts.currentNode
      if (text.parentElement.closest('code, pre, mjx-container, style, .jp-InternalAnchorLink')) continue
      if (/\$|\\[a-zA-Z(\[]/.test(text.data)) tell(page, `a formula is not rendered: ${text.data.trim().slice(0, 80)}`)
      if (/\*\*|\]\(|^#+ |^\||^```/.test(text.data)) tell(page, `markdown is left over: ${text.data.trim().slice(0, 80)}`)
    }
    for (const wrong of page.querySelectorAll('mjx-merror, mjx-container [mathcolor=red], mjx-container [style*="color: red"]'))
      tell(page, `MathJax says: ${wrong.getAttribute('data-mjx-error') || wrong.textContent}`)
    for (const container of page.querySelectorAll('mjx-container'))
      if (container.clientWidth > page.clientWidth) tell(page, 'a formula is wider than the page')
    for (const link of page.querySelectorAll('a[href]')) {
      const href = link.getAttribute('href')
      if (href.startsWith('#') && !anchors.has(decodeURIComponent(href.slice(1)))) tell(page, `${href} leads nowhere`)
      if (!link.textContent.trim()) tell(page, `a link to ${href} has no text`)
    }
    for (const table of page.querySelectorAll('table'))
      if (!table.querySelector('th')) tell(page, 'a table has no heading')
  }
  for (const image of document.querySelectorAll('.jp-Notebook .jp-Cell :is(.jp-RenderedMarkdown, .jp-OutputArea) img')) {
    if (!(image.complete && image.naturalWidth > 0)) tell(image, 'a picture does not show')
    if (['', 'Image'].includes(image.alt.trim())) // JupyterLab's own word where there is none
      tell(image, 'a picture has no alt text')
  }
  return found
}
