import type { PageFacts } from './facts.ts'
import { type Html, html } from './html.ts'

/**
 * What an upload may ask for of its pictures. The script shows of it what the chosen destination allows; names are those
 * of the request's query.
 */
export function renderPictures({ words: { pictures: say }, pictureFormats }: PageFacts): Html {
  const number = (name: string, max: number) =>
    html`<input name="${name}" type="number" inputmode="numeric" min="1" max="${max}" placeholder="${say.asItIs}">`
  return html`<details id="pictures" hidden>
<summary>${say.title}</summary>
<form>
<label data-wish="format">${say.format} <select name="format">
<option value="">${say.asItIs}</option>
${pictureFormats.map(format => html`<option value="${format}">${format.toUpperCase()}</option>\n`)}</select></label>
<label data-wish="quality">${say.quality} ${number('quality', 100)}</label>
<label data-wish="size">${say.width} ${number('width', 65_535)}</label>
<label data-wish="size">${say.height} ${number('height', 65_535)}</label>
<label data-wish="strip" class="check"><input name="strip" type="checkbox" value="1"> ${say.strip}</label>
</form>
</details>`
}
