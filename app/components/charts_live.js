// Draws one Plotly figure and redraws it in place, so that zoom, legend choices and the pointer's
// label survive new points. Streamlit's own chart element is built anew with every change.

let library;

function plotly(source) {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = source;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      library = undefined; // the next draw tries again
      script.remove();
      reject(new Error("The drawing library could not be loaded. Reload the page."));
    };
    document.head.append(script);
  });
  return library;
}

// The page's theme, as the defaults of everything that the figure leaves open.
function themed(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(`--st-${name}`).trim();
  const text = read("text-color");
  const faint = read("gray-text-color") || text;
  const axis = {
    gridcolor: read("border-color-light") || read("border-color"),
    zerolinecolor: read("border-color"),
    linecolor: read("border-color"),
    tickcolor: read("border-color"),
    tickfont: { color: faint },
    title: { font: { color: faint } },
  };
  return {
    background: read("background-color"),
    data: { heatmap: [{ textfont: { color: text } }] },
    layout: {
      font: { family: read("font"), size: 12, color: text },
      paper_bgcolor: "rgba(0, 0, 0, 0)",
      plot_bgcolor: "rgba(0, 0, 0, 0)",
      xaxis: axis,
      yaxis: axis,
      coloraxis: { colorbar: { outlinewidth: 0, tickfont: { color: faint } } },
      hoverlabel: {
        bgcolor: read("secondary-background-color"),
        bordercolor: read("border-color"),
        font: { family: read("font"), color: text },
      },
      modebar: {
        bgcolor: read("secondary-background-color"),
        color: faint,
        activecolor: read("primary-color"),
      },
    },
  };
}

function saveButton(Plotly, host, format) {
  const size = { width: 900, height: 480, scale: format === "png" ? 2 : 1 };
  return {
    name: format,
    title: `Save as ${format.toUpperCase()}`,
    icon: format === "png" ? Plotly.Icons.camera : Plotly.Icons.disk,
    click: () => {
      // Charts are transparent on the page; a picture needs the page's colour behind its text.
      const layout = { ...host.layout, paper_bgcolor: themed(host).background };
      const name = host.wanted.name;
      Plotly.downloadImage({ data: host.data, layout }, { format, filename: name, ...size });
    },
  };
}

// Made once for each chart: another object would be another configuration, and begin the chart anew.
function configuration(Plotly, host) {
  return {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [
      [saveButton(Plotly, host, "png"), saveButton(Plotly, host, "svg"), "autoScale2d"],
    ],
  };
}

async function draw(host) {
  const { figure, alt, scope, source } = host.wanted;
  const Plotly = await plotly(source);
  if (host.pressed || !host.isConnected) return; // a drag is under way: its end draws
  const { data, layout } = JSON.parse(figure);
  host.setAttribute("role", "figure");
  host.setAttribute("aria-label", alt);
  host.config ??= configuration(Plotly, host);
  const { data: defaults, layout: look } = themed(host);
  const template = { data: defaults, layout: look };
  const whole = { ...layout, autosize: true, uirevision: scope, template };
  await Plotly.react(host, data, whole, host.config);
}

function report(host, error) {
  host.textContent = error.message;
}

export default function ({ data, parentElement }) {
  const host = parentElement.querySelector(".chart");
  const isNew = host.wanted === undefined;
  host.wanted = data;
  host.style.height = `${data.height}px`;
  const redraw = () => draw(host).catch((error) => report(host, error));
  if (isNew) {
    const release = () => {
      if (!host.pressed) return;
      host.pressed = false;
      setTimeout(redraw); // after Plotly has dealt with the end of the drag
    };
    host.addEventListener("pointerdown", () => { host.pressed = true; }, true);
    window.addEventListener("pointerup", release);
    window.addEventListener("pointercancel", release);
    const resized = new ResizeObserver(() => {
      if (window.Plotly && host.data && host.clientWidth) window.Plotly.Plots.resize(host);
    });
    resized.observe(host);
    host.leave = () => {
      window.removeEventListener("pointerup", release);
      window.removeEventListener("pointercancel", release);
      resized.disconnect();
      if (window.Plotly) window.Plotly.purge(host);
    };
  }
  redraw();
  return host.leave;
}
