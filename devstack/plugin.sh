#!/bin/bash
# DevStack's plugin: fastio in glance-api under uWSGI. doc/source/operators/recipes.rst says how to enable it.

function configure_fastio {
    if [[ "$GLANCE_STANDALONE" == "True" ]]; then
        die "$LINENO" "fastio's plugin is for glance-api under uWSGI, and GLANCE_STANDALONE is True"
    fi
    # Each worker is patched before it loads glance.
    iniset "$GLANCE_UWSGI_CONF" uwsgi import fastio.auto
    iniset "$GLANCE_API_CONF" fastio profile "$FASTIO_PROFILE"
}

if is_service_enabled g-api; then
    case "$1 ${2:-}" in
        "stack install") setup_install "$FASTIO_DIR" ;;
        "stack post-config") configure_fastio ;;
        clean*) pip_uninstall fastio ;;
    esac
fi
