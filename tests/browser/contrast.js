// Marks those of the elements that axe-core's rule about contrast has to check: of each appearance that has not passed
// it before, the first. The appearance is what the rule depends on: the font, the colours, what the ancestors paint
// behind the text, whether the control is disabled. Text that may stand outside its ancestors has no appearance
// and is always marked.
([elements, passed, mark]) => {
    const hash = (text) => [...text].reduce((sum, char) => (Math.imul(sum, 31) + char.codePointAt(0)) | 0, 0);
    const nothing = "rgba(0, 0, 0, 0),none,1,none,normal,none,none";
    const backdrops = new Map([[null, ""]]);
    const backdropOf = (element) => {
        if (!backdrops.has(element)) {
            const above = backdropOf(element.parentElement), style = getComputedStyle(element);
            const { backgroundColor, backgroundImage, opacity, filter, mixBlendMode, clipPath, maskImage } = style;
            const paint = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode, clipPath, maskImage].join();
            const moved = /absolute|fixed/.test(style.position) || style.transform !== "none" || style.margin.includes("-");
            const backdrop = moved || above === null ? null : paint === nothing ? above : hash(above + paint);
            backdrops.set(element, backdrop);
        }
        return backdrops.get(element);
    };

    // The rule judges elements with text of their own, and controls with a value.
    const textOf = (element) => element.matches("input, select, textarea")
        ? element.value
        : [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("");
    const appearanceOf = (element) => {
        const backdrop = backdropOf(element);
        if (backdrop === null) return null;
        const { color, fontSize, fontWeight, textShadow, webkitTextStroke, visibility, textIndent } = getComputedStyle(element);
        const font = [color, fontSize, fontWeight, textShadow, webkitTextStroke, visibility, textIndent];
        const disabled = element.closest(":disabled, [aria-disabled=true]") || element.closest("label")?.control?.disabled;
        // Signs that are not words are exempt, and so may be a single character.
        const text = textOf(element), words = /[\p{L}\p{N}].*[\p{L}\p{N}]/su.test(text) ? "words" : text.trim();
        return hash([element.tagName, element.type, !!disabled, words, backdrop, ...font].join());
    };
    document.querySelectorAll(`[${mark}]`).forEach((element) => element.removeAttribute(mark));
    const marked = new Set(passed), added = [];
    for (const element of elements.filter((element) => textOf(element).trim())) {
        const appearance = appearanceOf(element);
        if (marked.has(appearance)) continue;
        element.setAttribute(mark, "");
        if (appearance === null) continue;
        marked.add(appearance);
        added.push(appearance);
    }
    return added;
}
